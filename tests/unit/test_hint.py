"""The hint on the wire: it comes back as it went, and nothing else is taken for one."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sinks.emit.errors import Malformation, MalformedHint
from sinks.emit.hint import Hint, parse

AT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)
TOKEN = "0123456789abcdef" * 2

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=100)
zones = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=8))])
instants = st.datetimes(timezones=zones).filter(lambda at: 1 < at.year < 9999)


def wire(**changes: bytes | None) -> dict[bytes, bytes]:
    """Return the fields of a good entry with some changed, or (None) left out."""
    hint = Hint("prod", "session-1", "cayu_event_7", "session.interrupted", AT)
    fields = {name.encode(): value.encode() for name, value in hint.to_fields(TOKEN).items()}
    fields.update({name.encode(): value for name, value in changes.items() if value is not None})
    return {name: value for name, value in fields.items() if changes.get(name.decode(), b"") is not None}


@given(texts, texts, texts, texts, instants, st.sampled_from([None, TOKEN]))
def test_hint_written_to_the_wire_is_read_back_equal(
    namespace: str, session_id: str, event_id: str, event_type: str, at: datetime, reply: str | None
) -> None:
    hint = Hint(namespace, session_id, event_id, event_type, at)

    fields = {name.encode(): value.encode() for name, value in hint.to_fields(reply).items()}

    assert parse(fields) == (hint, reply)


@given(st.dictionaries(st.sampled_from(list(wire())), st.binary(max_size=600)))
def test_any_bytes_are_a_hint_or_a_fixed_word(changes: dict[bytes, bytes]) -> None:
    try:
        hint, reply = parse(wire() | changes)
    except MalformedHint as error:
        outcome: object = str(error)
    else:
        outcome = parse({k.encode(): v.encode() for k, v in hint.to_fields(reply).items()}) == (hint, reply)

    assert outcome is True or outcome in set(Malformation)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"v": None}, Malformation.MISSING),
        ({"v": b"2"}, Malformation.VERSION),
        ({"namespace": None}, Malformation.MISSING),
        ({"session_id": b""}, Malformation.MISSING),
        ({"event_id": b"\xff"}, Malformation.NOT_UTF8),
        ({"type": b"\xed\xa0\x80"}, Malformation.NOT_UTF8),
        ({"session_id": b"a\0b"}, Malformation.NUL),
        ({"namespace": b"n" * 201}, Malformation.TOO_LONG),
        ({"session_id": b"s" * 513}, Malformation.TOO_LONG),
        ({"event_id": b"e" * 1_000_000}, Malformation.TOO_LONG),
        ({"type": b"t" * 101}, Malformation.TOO_LONG),
        ({"occurred_at": b"2026-03-01T12:30:15"}, Malformation.INSTANT),
        ({"occurred_at": b"2026-03-01"}, Malformation.INSTANT),
        ({"occurred_at": b"2026-02-30T12:30:15Z"}, Malformation.INSTANT),
        ({"occurred_at": b"0001-01-01T00:00:00+12:00"}, Malformation.INSTANT),
        ({"occurred_at": "２026-03-01T12:30:15Z".encode()}, Malformation.INSTANT),
        ({"occurred_at": b"20260301T123015Z"}, Malformation.INSTANT),
    ],
)
def test_entry_that_is_no_hint_is_refused_with_its_reason(
    changes: dict[str, bytes | None], reason: Malformation
) -> None:
    with pytest.raises(MalformedHint) as refused:
        parse(wire(**changes))

    assert refused.value.reason is reason


def test_longest_fields_are_accepted() -> None:
    hint = Hint("n" * 200, "é" * 512, "\U0001f514" * 512, "t" * 100, AT)

    assert parse({name.encode(): value.encode() for name, value in hint.to_fields().items()}) == (hint, None)


@pytest.mark.parametrize("token", [b"", b"0" * 31, b"0" * 33, b"A" * 32, b"arq:queue" + b"0" * 23, b"0" * 32 + b"\n"])
def test_token_that_could_name_another_key_is_ignored_and_the_hint_kept(token: bytes) -> None:
    hint, reply = parse(wire(reply=token))

    assert hint.session_id == "session-1"
    assert reply is None


def test_unknown_fields_are_ignored() -> None:
    hint, reply = parse(wire() | {b"later": b"\xff\0"})

    assert (hint.event_id, reply) == ("cayu_event_7", TOKEN)


def test_instant_with_an_offset_is_read_as_utc() -> None:
    hint, _ = parse(wire(occurred_at=b"2026-03-01t14:30:15.5+02:00"))

    assert hint.occurred_at == datetime(2026, 3, 1, 12, 30, 15, 500000, tzinfo=UTC)


def test_hint_has_no_room_for_content() -> None:
    fields = Hint("prod", "s", "e", "session.interrupted", AT).to_fields(TOKEN)

    assert set(fields) == {"v", "namespace", "session_id", "event_id", "type", "occurred_at", "reply"}


def test_naive_instant_makes_no_hint() -> None:
    with pytest.raises(MalformedHint):
        Hint("prod", "s", "e", "t", AT.replace(tzinfo=None))
