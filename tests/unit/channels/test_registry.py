"""A wrong `[channels]` table is one line that says what and where; a right one becomes a destination."""

import sys
from datetime import timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from config.errors import SettingsError
from worker.channels import console
from worker.channels.protocol import Channel
from worker.channels.registry import CHANNEL_TYPES, build_destinations
from worker.channels.services import Services

SLACK = {"type": "slack", "token": "xoxb-1", "channel": "C0123456789"}
MAIL = {"type": "email", "host": "smtp.example.com", "from": "agents@example.com", "to": ["oncall@example.com"]}
HOOK = {"type": "webhook", "url": "https://x.example/s3cret", "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}


def test_without_channels_there_is_one_console() -> None:
    (destination,) = build_destinations({}, Services())

    assert (destination.name, destination.type, destination.throttle) == ("console", "console", None)


def test_destinations_keep_order_fallback_and_throttle() -> None:
    tables = {
        "ops": SLACK | {"fallback": ["mail"]},
        "quick": SLACK | {"rate": "unlimited"},
        "mail": MAIL | {"rate": "30/m", "to": ["a@example.com", "b@example.com"]},
    }

    ops, quick, mail = build_destinations(tables, Services())

    assert (ops.name, ops.fallback, ops.throttle) == ("ops", ("mail",), timedelta(seconds=1))
    assert (quick.throttle, mail.throttle) == (None, timedelta(seconds=2))
    assert (ops.recipients, mail.recipients) == (("ops",), ("a@example.com", "b@example.com"))


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({}, "[channels.x] type: required, but not set"),
        (
            {"type": "slak"},
            "[channels.x] type: no channel type is called 'slak'; did you mean \"slack\"? there are: con",
        ),
        (SLACK | {"chanel": "C1"}, '[channels.x] chanel: unknown key; did you mean "channel"?'),
        (SLACK | {"fallbak": []}, '[channels.x] fallbak: unknown key; did you mean "fallback"?'),
        (SLACK | {"token_fil": "x"}, '[channels.x] token_fil: unknown key; did you mean "token_file"?'),
        (SLACK | {"token_file": "x"}, "[channels.x] token_file: token is set too; keep one of the two"),
        (SLACK | {"channel": "#ops"}, "[channels.x] channel: must be the channel's id, such as C0123456789"),
        (SLACK | {"api_url": "http://x.example/"}, "[channels.x] api_url: must be https://, for the token is sent"),
        (SLACK | {"rate": "fast"}, '[channels.x] rate: must be a rate such as "1/s" or "20/m", or "unlimited"'),
        (SLACK | {"timeout": "2m"}, "[channels.x] timeout: input should be less than or equal to"),
        (
            SLACK | {"template": "{{ agent }}"},
            '[channels.x] template: agent: unknown field; did you mean "agent_name"?',
        ),
        (SLACK | {"fallback": ["x"]}, "[channels.x] fallback: a destination cannot stand in for itself"),
        (SLACK | {"fallback": ["y"]}, "[channels.x] fallback: there is no [channels.y]; there are: x"),
        (MAIL | {"to": []}, "[channels.x] to: list should have at least 1 item"),
        (MAIL | {"to": ["a@b", "A@B"]}, "[channels.x]: to: an address is listed twice"),
        (MAIL | {"to": ["a@b\r\nBcc: c@d"]}, "[channels.x] to[0]: must be a mail address"),
        (MAIL | {"to": ["A <a@b>"]}, "[channels.x] to[0]: must be a mail address"),
        (MAIL | {"to": ["jürgen@example.com"]}, "[channels.x] to[0]: must be a mail address"),
        (MAIL | {"from": "=?utf-8?q?x?= <a@b>"}, "[channels.x] from: must be a mail address"),
        (MAIL | {"tls": "ssl"}, "[channels.x] tls: input should be 'starttls', 'tls' or 'none'"),
        (MAIL | {"username": "u"}, "[channels.x]: username and password go together"),
        (
            MAIL | {"tls": "none", "username": "u", "password": "s3cret"},
            "[channels.x]: the password would be sent",
        ),
        (MAIL | {"ca_file": "none.pem"}, "[channels.x] ca_file: "),
        (HOOK | {"url": "ftp://x/s3cret"}, "[channels.x] url: must be an http:// or https:// URL"),
        (HOOK | {"url": "https://["}, "[channels.x] url: "),
        (HOOK | {"secrets": []}, "[channels.x] secrets: list should have at least 1 item"),
        (HOOK | {"secrets": ["whsec_s3cret!"]}, '[channels.x] secrets[0]: must be "whsec_" and base64'),
        (HOOK | {"secrets": ["whsec_c2hvcnQ="]}, "[channels.x] secrets[0]: must hold at least 16 bytes"),
        ("slack", "[channels.x]: must be a table"),
    ],
)
def test_wrong_table_is_said_in_one_line_without_its_secrets(table: Any, line: str) -> None:
    with pytest.raises(SettingsError) as caught:
        build_destinations({"x": table}, Services())

    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_name_that_cannot_be_a_label_is_refused() -> None:
    with pytest.raises(SettingsError, match="letters, digits"):
        build_destinations({"a b": {"type": "console"}}, Services())


def test_secrets_come_from_files_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("xoxb-from-file\n")
    (tmp_path / "signing").write_text(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\nwhsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx\n"
    )
    slack = {key: value for key, value in SLACK.items() if key != "token"} | {"token_file": "token"}
    hook = {key: value for key, value in HOOK.items() if key != "secrets"} | {"secrets_file": "signing"}

    destinations = build_destinations({"ops": slack, "hook": hook}, Services(folder=tmp_path))

    assert [destination.type for destination in destinations] == ["slack", "webhook"]


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff"])
def test_secret_file_that_holds_none_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "token").write_bytes(content)
    table = {"type": "slack", "channel": "C1", "token_file": "token"}

    with pytest.raises(SettingsError, match=r"^\[channels.x\] token_file: .*(cannot be read|is empty|is not UTF-8)"):
        build_destinations({"x": table}, Services(folder=tmp_path))


class PlugInOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")


@pytest.fixture
def plug_in(monkeypatch: pytest.MonkeyPatch) -> EntryPoint:
    def build(name: str, _options: PlugInOptions, services: Services) -> Channel:
        return console.build(name, console.Options(), services)

    module = ModuleType("handbell_pager_for_tests")
    vars(module).update(TYPE="pager", Options=PlugInOptions, THROTTLE=timedelta(seconds=3), build=build)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return EntryPoint("pager", module.__name__, CHANNEL_TYPES.group)


def test_plug_in_is_a_type_like_any_other(plug_in: EntryPoint) -> None:
    (destination,) = build_destinations({"p": {"type": "pager"}}, Services(), installed=[plug_in])

    assert (destination.type, destination.throttle) == ("pager", timedelta(seconds=3))


def test_plug_in_cannot_override_a_built_in(plug_in: EntryPoint) -> None:
    usurper = EntryPoint("slack", plug_in.value, plug_in.group)

    with pytest.raises(SettingsError, match="claims the built-in channel type 'slack'"):
        build_destinations({"x": SLACK}, Services(), installed=[usurper])


@pytest.mark.parametrize("name", CHANNEL_TYPES.built_in)
def test_every_option_is_documented(name: str) -> None:
    module: Any = CHANNEL_TYPES.find(name, installed=[])

    assert name == module.TYPE
    for key, field in module.Options.model_fields.items():
        assert field.description, key
        assert field.description.endswith("."), key
