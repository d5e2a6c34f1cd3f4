"""What a database cannot take as it is must not keep a whole page, or the consumer, from going on."""

import random
import string
from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncEngine
from structlog.testing import capture_logs

from config.steps import Step
from reconciler.reasons import Door
from reconciler.references import Request
from reconciler.sightings import forget_other_children, record_sightings
from reconciler.sources.protocol import Delegation
from reconciler.tables import DELEGATIONS, NOTIFICATIONS, WITHHELD
from sinks.dead_letters import read_dead_letters
from tests.support.consuming import add, consuming, eventually, fields_of, received
from tests.support.events import AT
from tests.support.paging_source import observation
from tests.support.reconciling import NAMESPACE, Reconciling

_DICE = random.Random(1)  # text that no database can compress
LONG_ID = "".join(_DICE.choices(string.ascii_lowercase + string.digits, k=2000))
WIDE_ID = "".join(chr(_DICE.randrange(0x4E00, 0x9FFF)) for _ in range(1000))


@pytest.mark.parametrize("text", ["a\0b", "a" * 600, "a\ud800b"])
async def test_what_only_describes_a_request_never_keeps_it_from_being_stored(
    reconciling: Reconciling, text: str
) -> None:
    request = Request(agent_name=text, requester=text, environment_name=text, labels={text: text})
    item = replace(observation(), request=replace(request, public_session_id=text))

    await reconciling.notifications.apply(NAMESPACE, [item], door=Door.SWEEP)

    (row,) = await reconciling.rows(select(NOTIFICATIONS))
    assert row.agent_name.startswith("a")
    assert len(row.agent_name) <= 512
    assert row.public_session_id is None


@pytest.mark.parametrize(
    "identity", [{"session_id": WIDE_ID}, {"session_id": "a\0"}, {"action_id": "a" * 4097}, {"round_id": "a" * 513}]
)
async def test_identity_that_cannot_be_stored_does_not_stop_its_page(
    reconciling: Reconciling, identity: dict[str, Any]
) -> None:
    odd = observation(2)
    odd = replace(odd, reference=replace(odd.reference, **identity))

    with capture_logs() as logs:
        await reconciling.notifications.apply(NAMESPACE, [observation(1), odd], door=Door.SWEEP)

    assert list(await reconciling.states()) == [observation(1).reference.attention_id]
    assert [entry["event"] for entry in logs] == ["request.unstorable"]


async def test_withheld_request_and_delegations_of_any_length_do_not_stop_a_page(reconciling: Reconciling) -> None:
    withheld = replace(observation().reference, session_id=LONG_ID)
    pairs = [("parent", "child"), (LONG_ID, LONG_ID), ("a\0", "child"), ("parent", "\0")]
    delegations = [Delegation(*pair, is_child_enrolled=False) for pair in pairs]

    await record_sightings(reconciling.engine, NAMESPACE, withheld=[withheld], delegations=delegations, now=AT)
    await forget_other_children(reconciling.engine, NAMESPACE, "parent", delegations)

    assert len(await reconciling.rows(select(WITHHELD))) == 1
    assert [row.child_session_id for row in await reconciling.rows(select(DELEGATIONS))] == ["child"]


async def test_hint_that_no_index_entry_holds_is_a_dead_letter(
    valkey_url: str, redis: Redis, postgres_engine: AsyncEngine
) -> None:
    """Within every bound of a hint, but beyond what PostgreSQL takes in one entry of the inbox's key."""
    wide = fields_of(1) | {"session_id": WIDE_ID[:512], "event_id": WIDE_ID[-512:]}
    await add(redis, wide)
    await add(redis, fields_of(2))

    async with consuming(valkey_url, postgres_engine) as seen:
        await seen.steps.reach(Step.REPLIED)
        await eventually(lambda: received(seen.inbox.counts, 1))

    assert [letter.reason for letter in await read_dead_letters(postgres_engine)] == ["refused_by_database"]
