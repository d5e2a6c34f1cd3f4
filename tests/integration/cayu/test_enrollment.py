"""Who is enrolled: withheld sessions never, delegated parents never, children with their ancestor's requester."""

from datetime import timedelta

import pytest
from cayu import Message, RunRequest
from cayu.sessions import ForkSessionRequest, ResumeRequest
from cayu.sessions._run_identity import attention_withheld

from reconciler.sources.cayu_admission import is_withheld
from reconciler.states import Kind
from tests.support.cayu_stores import CayuStore
from tests.support.sources import KnownIds, cayu_source, every_page, shown
from worker.scripted.runtime import drain


async def parents(store: CayuStore) -> dict[str, str | None]:
    return {action.session.id: action.session.parent_session_id for action in await store.actions()}


async def test_withheld_sessions_and_their_children_are_counted_and_not_enrolled(
    unchanged_cayu_store: CayuStore,
) -> None:
    source = cayu_source(unchanged_cayu_store.url)
    parent_of = await parents(unchanged_cayu_store)

    [page] = await every_page(source)
    view = await source.session("trial", known=KnownIds())
    await source.close()

    withheld = {reference.session_id for reference in page.withheld}
    [child_of_quiet] = [session_id for session_id, parent in parent_of.items() if parent == "quiet"]
    assert withheld == {"trial", child_of_quiet}
    assert not withheld & {item.reference.session_id for item in page.active}
    assert "quiet" not in {delegation.session_id for delegation in page.delegations}
    assert ([item.session_id for item in view.withheld], view.active) == (["trial"], ())


async def test_withheld_check_agrees_with_the_runtimes_own(cayu_store: CayuStore) -> None:
    async with cayu_store.runtime() as (store, _app):
        sessions = [await store.load(session_id) for session_id in await parents(cayu_store)]

    ours = {session.id: is_withheld(session.metadata) for session in sessions}

    assert ours == {session.id: attention_withheld(session) for session in sessions}
    assert set(ours.values()) == {True, False}


@pytest.mark.parametrize(
    "metadata",
    [{"cayu:attention_handoff": value} for value in (False, True, None, 0, "false")]
    + [{"cayu:eval_trial": value} for value in (True, False, None, 1, "true")],
)
async def test_withheld_check_reads_odd_marks_as_the_runtime_does(
    cayu_store: CayuStore, metadata: dict[str, object]
) -> None:
    async with cayu_store.runtime() as (store, _app):
        session = (await store.load("ask")).model_copy(update={"metadata": metadata})

    assert is_withheld(metadata) == attention_withheld(session)


async def test_fork_of_a_withheld_session_is_withheld(cayu_store: CayuStore) -> None:
    run = RunRequest(
        agent_name="worker",
        session_id="quiet-talk",
        messages=[Message.text("user", "hello")],
        metadata={"cayu:attention_handoff": False},
    )
    async with cayu_store.runtime() as (_store, app):
        await drain(app.run(run))
        await drain(app.fork_session(ForkSessionRequest(source_session_id="quiet-talk", session_id="fork")))
        await drain(app.resume(ResumeRequest(session_id="fork", messages=[Message.text("user", "ask")])))
    source = cayu_source(cayu_store.url)

    view = await source.session("fork", known=KnownIds())
    await source.close()

    assert [reference.session_id for reference in view.withheld] == ["fork"]
    assert view.active == ()


async def test_known_rows_cost_no_look_up(cayu_store: CayuStore) -> None:
    """A row that has a notification is proven active by its page alone."""
    source = cayu_source(cayu_store.url)
    everything = await shown(source)
    known = KnownIds(*(item.reference.attention_id for item in everything.values()))
    loaded: list[str] = []
    store = (await source._opened()).store
    load = store.load

    async def counted(session_id: str) -> object:
        loaded.append(session_id)
        return await load(session_id)

    store.load = counted
    await source.page(None, limit=200, known=known)
    await source.close()

    enrolled = {item.reference.session_id for item in everything.values()}
    assert not enrolled & set(loaded)
    assert len(known.asked) == 1


async def test_delegated_parents_are_navigation_and_their_children_are_found(unchanged_cayu_store: CayuStore) -> None:
    source = cayu_source(unchanged_cayu_store.url)
    parent_of = await parents(unchanged_cayu_store)

    [page] = await every_page(source)
    await source.close()

    ways = {delegation.session_id: delegation.child_session_id for delegation in page.delegations}
    active = {item.reference.session_id: item for item in page.active}
    for top in ("parent", "nested"):
        asking = top
        while asking in ways:
            assert parent_of[ways[asking]] == asking
            assert asking not in active
            asking = ways[asking]
        assert active[asking].reference.kind is Kind.USER_INPUT
    assert len(ways) == 3


async def test_child_inherits_the_requester_of_its_nearest_ancestor(unchanged_cayu_store: CayuStore) -> None:
    source = cayu_source(unchanged_cayu_store.url)
    parent_of = await parents(unchanged_cayu_store)

    found = await shown(source)
    await source.close()

    requesters = {}
    for session_id, item in found.items():
        top = session_id
        while parent_of.get(top):
            top = str(parent_of[top])
        requesters[top] = item.request.requester if item.request else None
    assert requesters["ask"] == "alice@example.com"
    assert requesters["parent"] == "bob@example.com"
    assert requesters["nested"] == "carol@example.com"
    assert requesters["approve"] is None
    assert found["ask"].request is not None
    assert found["ask"].request.labels == {"requester": "alice@example.com", "team": "blue"}


async def test_other_label_names_the_requester_where_configured(cayu_store: CayuStore) -> None:
    source = cayu_source(cayu_store.url, requester_label="team")

    found = await shown(source)
    await source.close()

    assert found["ask"].request is not None
    assert found["ask"].request.requester == "blue"


async def test_boundary_leaves_out_what_was_paused_before_it(cayu_store: CayuStore) -> None:
    plain = cayu_source(cayu_store.url)
    everything = await shown(plain)
    await plain.close()
    paused_at = everything["recover"].request.paused_at  # type: ignore[union-attr]
    source = cayu_source(cayu_store.url, enroll_after=paused_at)

    found = await shown(source)
    enrolled = KnownIds(everything["ask"].reference.attention_id)
    with_known = await shown(source, known=enrolled)
    await source.close()

    assert "recover" in found
    assert not {"ask", "approve"} & set(found)
    assert "ask" in with_known, "what is enrolled already stays shown"


async def test_boundary_after_everything_enrolls_nothing(cayu_store: CayuStore) -> None:
    plain = cayu_source(cayu_store.url)
    latest = max(item.request.paused_at for item in (await shown(plain)).values())  # type: ignore[union-attr,type-var]
    await plain.close()
    source = cayu_source(cayu_store.url, enroll_after=latest + timedelta(seconds=1))

    assert await shown(source) == {}
    await source.close()


async def test_scope_enrolls_named_parents_and_shows_the_way_to_other_children(cayu_store: CayuStore) -> None:
    source = cayu_source(cayu_store.url, scope={"parents": ["ask", "parent"]})

    [page] = await every_page(source)
    await source.close()

    assert [item.reference.session_id for item in page.active] == ["ask"]
    [way] = page.delegations
    assert (way.session_id, way.is_child_enrolled) == ("parent", False)


async def test_scope_enrolls_children_of_authorized_agents_through_each_other(cayu_store: CayuStore) -> None:
    scope = {"parents": ["nested"], "child_agents": ["parent", "worker"]}
    source = cayu_source(cayu_store.url, scope=scope)

    [page] = await every_page(source)
    await source.close()

    [asked] = page.active
    assert asked.request is not None
    assert asked.request.requester == "carol@example.com"
    assert all(way.is_child_enrolled for way in page.delegations)
    assert len(page.delegations) == 2


async def test_scope_ends_where_a_child_between_is_not_authorized(cayu_store: CayuStore) -> None:
    source = cayu_source(cayu_store.url, scope={"parents": ["nested"], "child_agents": ["worker"]})

    [page] = await every_page(source)
    await source.close()

    assert page.active == ()
    assert [(way.session_id, way.is_child_enrolled) for way in page.delegations] == [("nested", False)]
