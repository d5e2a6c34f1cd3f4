"""The scripted runtime that other tests stand on does pause, and can be answered from its store."""

from pathlib import Path

from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import current_action, reference_of, settle


async def test_scripted_agent_pauses_and_its_answer_resolves_the_reference(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "cayu.db"))
    app = make_app(store)
    await pause(app, "user_input", "s-1")
    reference = await reference_of(store, "s-1")
    before = await app.get_human_attention_state(reference)

    await settle(app, await current_action(store, "s-1"), "answer")

    after = await app.get_human_attention_state(reference)
    assert (before.state, after.state) == ("active", "resolved")
    await close_store(store)
