"""The `[[sources]]` table of a source of type `cayu`: which store, and which of its requests are enrolled."""

from typing import Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, model_validator


class Scope(BaseModel):
    """Which sessions are enrolled where not all are: named parents, and the children they may speak for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    parents: tuple[str, ...] = Field(
        min_length=1, description="Session ids that are enrolled; a request of any other session is not."
    )
    child_agents: tuple[str, ...] = Field(
        default=(),
        description=(
            "Agents whose sessions are enrolled too where they were started, directly or through each other, under"
            " one of `parents`. Empty: no child is authorized, and a parent that waits on one is only shown."
        ),
    )


class Options(BaseModel):
    """Where the Cayu store is, and what of it becomes a notification. Exactly one of `store` and `project`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    store: SecretStr | None = Field(
        default=None,
        description=(
            "The agent's session store: `sqlite:///FILE` (`sqlite:////ABSOLUTE`), a file name, or"
            " `postgresql://USER@HOST/NAME`. It is opened read-only. Relative files count from the configuration"
            " file's folder. Either this or `project`."
        ),
    )
    project: str | None = Field(
        default=None,
        description="Folder of a Cayu project; `[tool.cayu.session_store]` of its pyproject.toml names the store. "
        "Either this or `store`.",
    )
    enroll_after: AwareDatetime | None = Field(
        default=None,
        description=(
            "The enrollment boundary: nothing paused before it is enrolled. The first start of the namespace fixes it;"
            " a later change moves nothing. Unset: every current request."
        ),
    )
    scope: Scope | None = Field(
        default=None,
        description="Enroll only these sessions (its keys stand below). Unset: every session of the store.",
    )
    requester_label: str | None = Field(
        default="requester",
        min_length=1,
        max_length=128,
        description="Session label that names for whom the agent works; a child has its nearest ancestor's.",
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.store is None) == (self.project is None):
            raise ValueError("name exactly one of `store` and `project`")
        return self
