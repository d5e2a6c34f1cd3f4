"""Messages hold fixed text and public ids only."""

from datetime import UTC, datetime

import pytest

from reconciler.enrolled import Enrolled
from reconciler.references import Reference
from reconciler.states import AttentionState, Evidence, Kind
from worker.delivery.messages import Links
from worker.delivery.requests import Request

AT = datetime(2026, 3, 1, tzinfo=UTC)
PATTERN = "https://agents.example/{namespace}/s/{session}?request={attention_id}"


def request(public: str | None, *, raw: str = "raw/1") -> Request:
    reference = Reference("attention_1", raw, "1", Kind.USER_INPUT, "action")
    enrolled = Enrolled(1, "prod", reference, AttentionState.ACTIVE, Evidence.CURRENT_ACTION, AT, 0)
    return Request(enrolled, "billing", None, public, AT, AT, is_dismissed=False)


def test_link_is_made_from_the_public_id_percent_encoded() -> None:
    link = Links(PATTERN).link(request("a b/{attention_id}&x=1"))

    assert link == "https://agents.example/prod/s/a%20b%2F%7Battention_id%7D%26x%3D1?request=attention_1"


@pytest.mark.parametrize("links", [Links(PATTERN), Links(None), Links(None, are_raw_ids_allowed=True)])
def test_no_link_without_a_public_id(links: Links) -> None:
    assert links.link(request(None)) is None


def test_raw_id_only_where_it_is_allowed_and_after_the_public_one() -> None:
    links = Links(PATTERN, are_raw_ids_allowed=True)

    assert "/s/raw%2F1?" in str(links.link(request(None)))
    assert "/s/public?" in str(links.link(request("public")))
