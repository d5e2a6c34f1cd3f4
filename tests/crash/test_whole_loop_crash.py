"""The whole product killed with -9 at every step, while it tells and while it settles, loses and repeats nothing.

A webhook may come twice under the same id (the receiver knows it by that), a mail once more where the process ended
between the mail server's answer and the record of it: the mail server cannot be asked.
"""

import signal
from collections import Counter

import pytest

from config.steps import Step
from tests.support.listeners import Listeners
from tests.support.one_pause import SESSION, Agent, Moments, emitting
from tests.support.product import Product, Run, until


@pytest.mark.parametrize("step", list(Step))
async def test_product_killed_at_any_step_tells_once_and_settles_once(
    step: Step, product: Product, listeners: Listeners, agent: Agent, moments: Moments
) -> None:
    """The first process dies telling, the second settling, the third is left alone."""
    product.configure(listeners.toml(agent.store))
    agent.ask()
    is_armed = product.folder / "armed"
    is_armed.touch()

    first = product.start_killed_at(step, armed_by=is_armed)
    async with emitting(product.redis_url, moments.opening):
        await died_of_the_step(first)
        is_armed.unlink()
        second = product.start_killed_at(step, armed_by=is_armed)
        await until(listeners.has_opened, second)
    await until(product.is_quiet, second)

    agent.be_answered()
    is_armed.touch()
    async with emitting(product.redis_url, moments.closing):
        await died_of_the_step(second)
        third = await product.started()
        await until(listeners.has_settled, third)
    await until(product.is_quiet, third)

    check_promises(product, listeners)
    assert await third.stop() == 0


async def died_of_the_step(run: Run) -> None:
    assert await run.ended() == -signal.SIGKILL, run.stderr


def check_promises(product: Product, listeners: Listeners) -> None:
    assert product.states() == {SESSION: "resolved"}
    assert product.rows("SELECT COUNT(*) AS number FROM notifications") == [{"number": 1}]
    changes = product.rows("SELECT from_state, to_state, is_conflict FROM notification_history ORDER BY id")
    assert [tuple(change.values()) for change in changes] == [(None, "active", 0), ("active", "resolved", 0)]
    assert sent(product) == {(name, purpose): 1 for name in ("mail", "hook") for purpose in ("open", "settle")}
    assert listeners.counts()["hook"] == (1, 1)
    for purpose, is_settled in (("open", False), ("settle", True)):
        mails = listeners.mails(is_settled=is_settled)
        assert 1 <= len(mails) <= 1 + interrupted(product, "mail", purpose)
        assert len(set(mails)) == 1, "a repeated mail bears the same Message-ID"


def interrupted(product: Product, destination: str, purpose: str) -> int:
    """Return how many tries were recorded as cut short, at most one: only then may a mail have been repeated."""
    rows = product.rows(
        "SELECT a.reason FROM attempts a JOIN deliveries d ON d.id = a.delivery_id "
        "WHERE d.destination = ? AND d.purpose = ? AND a.outcome = 'unknown'",
        destination,
        purpose,
    )
    assert [row["reason"] for row in rows] in ([], ["interrupted"])
    return len(rows)


def sent(product: Product) -> Counter[tuple[str, str]]:
    rows = product.rows("SELECT destination, purpose, status FROM deliveries")
    assert {row["status"] for row in rows} == {"sent"}
    return Counter((row["destination"], row["purpose"]) for row in rows)
