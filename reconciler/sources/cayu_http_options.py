"""The `[[sources]]` table of a source of type `cayu-http`: which server, and which of its requests are enrolled."""

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr

from config.setting_urls import PublicUrl


class Options(BaseModel):
    """A Cayu server that is asked instead of its store."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: PublicUrl = Field(description="Where the agent's protected server is; `/api/...` is added to it.")
    token: SecretStr | None = Field(
        default=None, description="Bearer token that the server's authentication takes. Unset: none is sent."
    )
    enroll_after: AwareDatetime | None = Field(
        default=None,
        description=(
            "The enrollment boundary: nothing paused before it is enrolled. The first start of the namespace fixes it;"
            " a later change moves nothing. Unset: every current request."
        ),
    )
    requester_label: str | None = Field(
        default="requester",
        min_length=1,
        max_length=128,
        description="Session label that names for whom the agent works; a child has its nearest ancestor's.",
    )
