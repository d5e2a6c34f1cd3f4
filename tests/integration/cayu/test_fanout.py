"""What the runtime says of its own event delivery is shown without any exception's text, by store and by server."""

import pytest
from aiohttp import ClientSession
from cayu.events import Event
from cayu.observability import EventSink

from reconciler.errors import SourceUnavailable
from reconciler.sources.fanout import Fanout, ShowsFanout, fanout_of
from tests.support.cayu_server import cayu_server
from tests.support.cayu_stores import CayuStore
from tests.support.sources import cayu_source, http_source
from worker.scripted.runtime import close_store, make_app, open_store, pause

SECRET = "hunter2-in-an-exception"


class BrokenSink(EventSink):
    """A sink that fails with a secret in its text."""

    async def emit(self, event: Event) -> None:
        raise RuntimeError(f"redis down password={SECRET}")


async def pause_with_broken_sink(store: CayuStore) -> None:
    opened = open_store(store.url)
    await pause(make_app(opened, sinks=[BrokenSink()]), "user_input", "unheard")
    await close_store(opened)


async def test_failed_events_are_shown_without_their_errors_text(any_cayu_store: CayuStore) -> None:
    await pause_with_broken_sink(any_cayu_store)
    source = cayu_source(any_cayu_store.url)

    found = await source.fanout(limit=3)
    await source.close()

    assert isinstance(source, ShowsFanout)
    assert found.health.failed_deferred + found.health.failed_retryable > 3
    assert {row.session_id for row in found.rows} == {"unheard"}
    assert (len(found.rows), found.has_more) == (3, True)
    assert {row.status for row in found.rows} == {"failed"}
    assert all(row.last_error for row in found.rows)
    assert SECRET not in repr(found)


async def test_server_shows_what_the_store_shows(cayu_store: CayuStore) -> None:
    await pause_with_broken_sink(cayu_store)
    direct = cayu_source(cayu_store.url)
    by_store = await direct.fanout(limit=200)
    await direct.close()

    async with ClientSession() as http, cayu_server(cayu_store) as url:
        by_server = await http_source(url, http).fanout(limit=200)

    assert [row.event_sequence for row in by_server.rows] == [row.event_sequence for row in by_store.rows]
    assert SECRET not in repr(by_server)


HEALTHY = {
    "observed_at": "2026-01-02T03:04:05Z",
    "pending": 0,
    "leased_live": 0,
    "leased_expired": 0,
    "failed_retryable": 0,
    "failed_deferred": 0,
    "dead_lettered": 0,
    "delivered": 9,
    "claimable_total": 0,
    "outstanding_total": 0,
    "repeatedly_failing": 0,
    "final_attempt_boundary": 0,
    "max_automatic_attempts": 3,
}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"dead_lettered": 2}, "2 events were given up after 3 attempts"),
        ({"repeatedly_failing": 1}, "again and again"),
        ({"claimable_total": 4}, "4 events wait for a recovery sweep"),
    ],
)
def test_what_to_fix_is_said(changed: dict[str, int], said: str) -> None:
    found: Fanout = fanout_of({**HEALTHY, **changed}, {"deliveries": []})

    assert bool(found.what_to_fix) == bool(changed)
    assert said in " ".join(found.what_to_fix)


def test_account_of_another_runtime_is_one_line() -> None:
    with pytest.raises(SourceUnavailable) as refused:
        fanout_of({}, {})

    assert refused.value.reason == "bad_answer"
