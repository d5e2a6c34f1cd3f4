"""The wake-up set is Cayu's own, to the letter."""

from cayu import human_attention_handoff

from sinks.emit.wakeup import FOLLOW_UP_EVENTS, LIFECYCLE_EVENTS, WAKE_UP_EVENTS


def test_wake_up_set_is_exactly_that_of_cayu_s_own_handoff() -> None:
    assert {str(event_type) for event_type in human_attention_handoff.LIFECYCLE_EVENTS} == LIFECYCLE_EVENTS
    assert {str(event_type) for event_type in human_attention_handoff.FOLLOW_UP_EVENTS} == FOLLOW_UP_EVENTS
    assert LIFECYCLE_EVENTS | FOLLOW_UP_EVENTS == WAKE_UP_EVENTS
