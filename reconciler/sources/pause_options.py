"""The `[[sources]]` table of a source of type `pauses`: where the ledger is, and who may post captures."""

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from config.durations import Duration

TableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,62}$")]


class Options(BaseModel):
    """A runtime whose pauses are tokens in an issuance ledger (symfonic's human-interaction capability)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ledger: SecretStr = Field(
        description=(
            "Database of the issuance ledger, only ever read: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`. The"
            " tables are Handbell's own, or two of the documented records' columns."
        )
    )
    grace: Annotated[Duration, Field(gt=timedelta(0), le=timedelta(days=1))] = Field(
        default=timedelta(seconds=60),
        description=(
            "How long after its signed expiry an unredeemed pause is over: a redemption that began in time may commit"
            " a little later. Longer than the ledger's clocks differ, and than a replica lags behind."
        ),
    )
    issued_table: TableName = Field(
        default="issued_tokens",
        description="Table of issuances where it is not Handbell's own: jti, scope_hash, name, issued_at, expires_at.",
    )
    consumed_table: TableName = Field(
        default="token_consumptions",
        description="Table of redemptions where it is not Handbell's own: jti, scope_hash, name.",
    )
    tokens: tuple[SecretStr, ...] = Field(
        default=(),
        description=(
            "Tokens that may post to `/capture/NAMESPACE`, several while one replaces another: the token itself, or"
            " `sha256:` and the hex digest of it. Unset: one is made at the first start and kept in state_dir."
        ),
    )
    requests_per_second: Annotated[float, Field(gt=0, le=100_000)] = Field(
        default=200,
        description="Requests a second that each process takes from this source; beyond it 429 is answered.",
    )
