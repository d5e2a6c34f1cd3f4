"""Decides who must be told what, when, and why: a pure function of a request, the routes and what was told before.

No clock is read and nothing is written here; equal inputs give equal plans. The plan is made anew whenever one of its
inputs changes (a state, a message that was sent, a person's word, the routes), and is always the difference between
what is wanted and what stands in the outbox: made twice it changes nothing the second time. `reconciler/outbox.py`
stores it in the transaction of the change that caused it.
"""

from reconciler.plan.case import Case, Silence, Span, Trigger
from reconciler.plan.deciding import plan
from reconciler.plan.holds import Hold, hold
from reconciler.plan.rows import OPEN, SETTLE, Decision, Moved, NewDelivery, Plan, Told, message_key

__all__ = [
    "OPEN",
    "SETTLE",
    "Case",
    "Decision",
    "Hold",
    "Moved",
    "NewDelivery",
    "Plan",
    "Silence",
    "Span",
    "Told",
    "Trigger",
    "hold",
    "message_key",
    "plan",
]
