"""The built-in interaction's two shapes: one question, one answer.

The documentation gives each one field and names neither the fields nor their bounds; these are ours.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_QUESTION_CHARS = 4_000
MAX_ANSWER_CHARS = 10_000


class AskUserPayload(BaseModel):
    """What the agent asks; 1 to 4,000 characters, nothing beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    question: Annotated[str, Field(min_length=1, max_length=MAX_QUESTION_CHARS)]


class AskUserResponse(BaseModel):
    """What the person answers; 1 to 10,000 characters, nothing beside it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    answer: Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_CHARS)]
