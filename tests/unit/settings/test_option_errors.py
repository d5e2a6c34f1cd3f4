"""A wrong configuration is said in one line that names the key, its place and its neighbour, never the value."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from config.option_errors import option_error, option_error_lines, unknown_key_text


class Step(BaseModel):
    model_config = ConfigDict(extra="forbid")
    after: str
    notify: list[str]


class Route(BaseModel):
    model_config = ConfigDict(extra="forbid")
    escalate: list[Step] = []


class Table(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=False)
    host: str
    sender: Annotated[str, Field(alias="from")] = "a@b"
    port: int = Field(default=25, ge=1, le=65535)
    tls: Literal["starttls", "tls", "none"] = "starttls"
    token: SecretStr = SecretStr("")
    routes: list[Route] = []
    by_name: dict[str, Route] = {}

    @field_validator("host")
    @classmethod
    def _no_space(cls, value: str) -> str:
        if " " in value:
            raise ValueError("must be a host name, without spaces")
        return value


def lines(table: dict[str, object], **options: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        Table.model_validate(table)
    return option_error_lines(caught.value, model=Table, where="[channels.mail]", **options)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({}, "[channels.mail] host: required, but not set"),
        ({"host": 5}, "[channels.mail] host: must be a text in quotes"),
        ({"host": "a b"}, "[channels.mail] host: must be a host name, without spaces"),
        ({"host": "h", "prot": 1}, '[channels.mail] prot: unknown key; did you mean "port"?'),
        ({"host": "h", "form": "x"}, '[channels.mail] form: unknown key; did you mean "from"?'),
        ({"host": "h", "sender": "x"}, "[channels.mail] sender: unknown key; known are: by_name, from, host, port"),
        ({"host": "h", "port": 0}, "[channels.mail] port: input should be greater than or equal to 1"),
        ({"host": "h", "tls": "ssl"}, "[channels.mail] tls: input should be 'starttls', 'tls' or 'none'"),
        ({"host": "h", "token": 5}, "[channels.mail] token: must be a text in quotes"),
        ({"host": "h", "routes": {}}, "[channels.mail] routes: must be a list"),
        (
            {"host": "h", "routes": [{"escalate": [{"after": "1h", "notify": [], "notfy": 1}]}]},
            '[channels.mail] routes[0].escalate[0].notfy: unknown key; did you mean "notify"?',
        ),
        (
            {"host": "h", "by_name": {"x-1": {"escalat": []}}},
            '[channels.mail] by_name.x-1.escalat: unknown key; did you mean "escalate"?',
        ),
    ],
)
def test_wrong_option_is_said_in_one_line(table: dict[str, object], expected: str) -> None:
    said = lines(table)

    assert len(said) == 1
    assert said[0].startswith(expected)
    assert "\n" not in said[0]


def test_value_is_never_repeated() -> None:
    said = lines({"host": "h", "port": "s3cret", "tls": "s3cret", "token": ["s3cret"], "routes": "s3cret"})

    assert len(said) == 4
    assert not any("s3cret" in line for line in said)


def test_keys_taken_out_before_are_offered_at_the_top_only() -> None:
    assert lines({"host": "h", "falback": []}, also_known=("fallback",)) == [
        '[channels.mail] falback: unknown key; did you mean "fallback"?'
    ]
    nested = lines({"host": "h", "routes": [{"falback": 1}]}, also_known=("fallback",))
    assert nested == ["[channels.mail] routes[0].falback: unknown key; known are: escalate"]


def test_exception_says_the_first_line_and_counts_the_others() -> None:
    with pytest.raises(ValidationError) as caught:
        Table.model_validate({"port": 0, "hots": 1})

    error = option_error(caught.value, model=Table, where="[channels.mail]")

    assert str(error) == '[channels.mail] hots: unknown key; did you mean "host"? (and 2 more)'
    assert error.exit_code == 2


def test_where_nothing_is_known_nothing_is_offered() -> None:
    assert unknown_key_text("x", []) == "unknown key; none is known here"
