"""The agent's side of a proof: it pauses, and a person settles the pause through the runtime's exact-action calls."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any

from cayu import CayuApp
from cayu.observability import EventSink

from reconciler.states import Kind
from sinks.inbox_sink import InboxSink
from worker.proof.faults import CrashingSink, ForgetfulSink
from worker.proof.folder import NAMESPACE, SESSION_ID, ProofError, new_folder, opened, paused_folder
from worker.scripted.runtime import Kind as Pause
from worker.scripted.runtime import close_store, make_app, open_store, pause
from worker.scripted.settling import Verb, current_action, settle


class Fault(StrEnum):
    """What goes wrong while the agent pauses."""

    NONE = "none"
    CRASH_BEFORE_DELIVERY = "crash_before_delivery"
    FAIL_AFTER_ACCEPT = "fail_after_accept"


class Deed(StrEnum):
    """What a person does about the pause."""

    ANSWER = "answer"
    APPROVE = "approve"
    DENY = "deny"
    RECOVER = "recover"
    INTERRUPT = "interrupt"


_VERBS: dict[Deed, Verb] = {
    Deed.ANSWER: "answer",
    Deed.APPROVE: "approve",
    Deed.DENY: "deny",
    Deed.RECOVER: "recover-completed",
    Deed.INTERRUPT: "interrupt",
}
_PAUSES: dict[Kind, Pause] = {
    Kind.USER_INPUT: "user_input",
    Kind.TOOL_APPROVAL: "tool_approval",
    Kind.MANUAL_RECOVERY: "manual_recovery",
}
_DEEDS = {
    Kind.USER_INPUT: (Deed.ANSWER, Deed.INTERRUPT),
    Kind.TOOL_APPROVAL: (Deed.APPROVE, Deed.DENY, Deed.INTERRUPT),
    Kind.MANUAL_RECOVERY: (Deed.RECOVER, Deed.INTERRUPT),
}


async def pause_in(path: Path, kind: Kind, fault: Fault) -> None:
    """Run the agent in a new folder until it pauses. Ends the process with 17 where that fault is asked for."""
    async with opened(new_folder(path), is_new=True) as house:
        sink = _faulty(InboxSink(house.inbox, namespace=NAMESPACE), fault)
        async with runtime(house.folder.store, sink) as (_store, app):
            await pause(app, _PAUSES[kind], SESSION_ID)


async def act_in(path: Path, deed: Deed) -> Kind:
    """Settle what is pending, as `deed` says; return its kind. Raises ProofError where that is not possible now."""
    async with opened(paused_folder(path)) as house:
        sink = InboxSink(house.inbox, namespace=NAMESPACE)
        async with runtime(house.folder.store, sink) as (store, app):
            action = await current_action(store, SESSION_ID)
            if action is None:
                raise ProofError(f"nothing waits in {house.folder.path} any more: look with `handbell proof inspect`")
            kind = Kind(action.kind)
            if deed not in _DEEDS[kind]:
                fitting = ", ".join(_DEEDS[kind])
                raise ProofError(f"{deed} does not fit the {kind} that waits in {house.folder.path}: use {fitting}")
            try:
                await settle(app, action, _VERBS[deed])
            except (ValueError, RuntimeError, LookupError) as error:
                raise ProofError(
                    f"the runtime refused to {deed} ({type(error).__name__}): somebody else may have, so look again"
                ) from None
            return kind


@asynccontextmanager
async def runtime(path: Path, sink: EventSink) -> AsyncIterator[tuple[Any, CayuApp]]:
    """Give the writable store and the agent's application with `sink`; raises ProofError where it is no store."""
    try:
        store = open_store(str(path))
    except (sqlite3.Error, OSError, ValueError, RuntimeError) as error:
        raise ProofError(f"{path} cannot be opened as a store ({type(error).__name__}): name a fresh folder") from None
    try:
        yield store, make_app(store, sinks=[sink])
    finally:
        await close_store(store)


def _faulty(sink: EventSink, fault: Fault) -> EventSink:
    match fault:
        case Fault.NONE:
            return sink
        case Fault.CRASH_BEFORE_DELIVERY:
            return CrashingSink(sink)
        case Fault.FAIL_AFTER_ACCEPT:
            return ForgetfulSink(sink)
