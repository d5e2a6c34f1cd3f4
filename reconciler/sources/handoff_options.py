"""The `[[sources]]` table of a source of type `handoff`: who may push, and whether the agent's server can be asked."""

from datetime import timedelta
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from config.durations import Duration
from config.setting_urls import PublicUrl

# The client of Cayu 0.15 keeps to these bounds whatever is advertised (cayu.human_attention_handoff, `run`).
_OFTENEST = timedelta(seconds=10)
_SELDOMEST = timedelta(hours=1)


class Options(BaseModel):
    """An agent that pushes over `cayu.human-attention-handoff/v1`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: tuple[SecretStr, ...] = Field(
        default=(),
        description=(
            "Tokens that may push, several while one replaces another: the token itself, or `sha256:` and the hex"
            " digest of it. Unset: one is made at the first start and kept in `state_dir`."
        ),
    )
    fresh_for: Annotated[Duration, Field(gt=timedelta(0))] = Field(
        default=timedelta(minutes=15),
        description=(
            "How long a pushed word counts as true where the agent cannot be asked. Beyond it openings and reminders"
            " wait for the next push; keep it above `reconcile_every`."
        ),
    )
    reconcile_every: Annotated[Duration, Field(ge=_OFTENEST, le=_SELDOMEST)] = Field(
        default=timedelta(minutes=5),
        description="How often the agent is asked to repeat its repair pass.",
    )
    ask_url: PublicUrl | None = Field(
        default=None,
        description="The agent's protected server, where Handbell may ask about one request before late work. Unset: "
        "its last push counts for `fresh_for`.",
    )
    ask_token: SecretStr | None = Field(default=None, description="Bearer token for `ask_url`. Unset: none is sent.")

    max_body_bytes: Annotated[int, Field(ge=4096, le=64 * 2**20)] = Field(
        default=2**20,
        description="Longest body of one push, in bytes; a full batch of 200 is about 150 kB. A longer one is answered "
        "413.",
    )
    requests_per_second: Annotated[float, Field(gt=0, le=100_000)] = Field(
        default=200,
        description="Requests a second that each process takes from this source; beyond it 429 is answered.",
    )

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.ask_token is not None and self.ask_url is None:
            raise ValueError("ask_token is set but ask_url is not")
        if self.ask_url is None and self.fresh_for < self.reconcile_every:
            raise ValueError("fresh_for is shorter than reconcile_every: nothing would be fresh between two passes")
        return self
