"""No secret gets through, wherever it stands in an event."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from config.redaction import redact, redacted_text

SECRET = "hunter2"


@pytest.mark.parametrize(
    "fields",
    [
        {"token": SECRET},
        {"slack_token": SECRET},
        {"client_secret": SECRET},
        {"Password": SECRET},
        {"authorization": f"Bearer {SECRET}"},
        {"headers": {"Authorization": f"Basic {SECRET}", "X-Api-Key": SECRET}},
        {"options": [{"password": SECRET}]},
        {"secrets": [SECRET]},
        {"token": SECRET.encode()},
        {"token": SecretStr(SECRET)},
        {"url": f"https://example.com/hooks/{SECRET}"},
        {"public_url": f"https://user:{SECRET}@example.com"},
        {"detail": f"cannot reach redis://:{SECRET}@127.0.0.1:6379/0"},
        {"detail": f"cannot reach postgresql+asyncpg://u:p@ss{SECRET}@db/x"},
        {"detail": f"GET https://example.com/a?token={SECRET}&x=1 failed"},
        {"detail": f"POST https://hooks.slack.com/services/T0/B0/{SECRET} failed"},
        {"detail": f"used xoxb-123-{SECRET}"},
        {"detail": f"signed with whsec_{SECRET}"},
        {"detail": f"sent Bearer {SECRET}"},
        {"detail": ValueError(f"redis://:{SECRET}@h")},
        {"exception": f"Traceback ...\n  OSError: https://me:{SECRET}@h/x"},
    ],
)
def test_secret_is_taken_out(fields: dict[str, Any]) -> None:
    assert SECRET not in repr(redact(None, "info", dict(fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {"event": "delivery.sent", "delivery_id": 7, "duration_ms": 1.5, "is_late": False, "reason": None},
        {"event": "web.listening", "address": "http://127.0.0.1:8322/healthz"},
        {"attention_id": "att_01", "recipient": "oncall@example.com"},
        {"tokens_outstanding": 3, "has_secret": True},
    ],
)
def test_what_is_no_secret_stays(fields: dict[str, Any]) -> None:
    assert redact(None, "info", dict(fields)) == fields


def test_place_of_a_url_is_kept() -> None:
    text = redacted_text("redis://me:hunter2@cache:6379/0 and https://a.example/x?y=1")

    assert text == "redis://[redacted]@cache:6379/0 and https://a.example/x?[redacted]"


ANYTHING = st.recursive(
    st.none() | st.text() | st.integers() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(ANYTHING)
def test_any_value_can_be_logged(value: Any) -> None:
    redact(None, "info", {"value": value})
