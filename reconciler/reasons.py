"""Why somebody is told, told later, or not told: a closed set, stored with every decision and documented."""

from enum import StrEnum


class Verdict(StrEnum):
    """What was decided about one message."""

    PLANNED = "planned"  # the message goes at the time that stands beside it
    POSTPONED = "postponed"  # not now; it is looked at again at the time that stands beside it
    CANCELLED = "cancelled"  # it was planned and will not go
    SUPPRESSED = "suppressed"  # it was never planned


class DecisionReason(StrEnum):
    """The reason of a verdict, and of a delivery's present status where no provider has failed."""

    ROUTED = "routed"  # a route names the destination
    STAGGERED = "staggered"  # a route names the destination after others, and it waits for its turn
    REMINDED = "reminded"  # nobody has answered since the last message
    ESCALATED = "escalated"  # nobody has answered for as long as a step of escalation says
    SETTLED = "settled"  # the request is over; who was told of it is told that
    FALLBACK = "fallback"  # another destination is broken and names this one
    REDRIVEN = "redriven"  # a person asked for another try
    OPERATOR_NOTICE = "operator_notice"  # it is Handbell's own notice to its operator
    GATHERED = "gathered"  # the route gathers requests for its `digest_window`; they are told in one message
    STORM = "storm"  # more openings a minute than the route's `storm_limit`: they are told in one message
    QUIET_HOURS = "quiet_hours"  # the route's quiet hours; it goes at their end, where the request still waits
    ACKNOWLEDGED = "acknowledged"  # a person is on it (`handbell ack`); it goes when that time is over
    SILENCED = "silenced"  # a person silenced such requests (`handbell silence`); it goes when that ends
    SOURCE_UNAVAILABLE = "source_unavailable"  # the source, asked just before, could not say that it still waits
    NOT_CONFIRMED_LATELY = "not_confirmed_lately"  # a push source's last word is older than `fresh_for`
    NO_SOURCE = "no_source"  # its namespace has no source that may be asked (none, or one that is refused)
    WAITS_FOR_OPENING = "waits_for_opening"  # the end of a request never overtakes its opening
    SETTLED_BEFORE_SENDING = "settled_before_sending"  # the request was over before the message went
    NOTHING_WAS_OPENED = "nothing_was_opened"  # nobody was told of the request there, so nobody is told of its end
    DISMISSED = "dismissed"  # a person put the request aside (`handbell dismiss`)
    ROUTE_CHANGED = "route_changed"  # the routes were edited, and none wants this message any more
    NO_ROUTE = "no_route"  # no route matches the request
    NOBODY_NAMED = "nobody_named"  # the route that matches names no destination
    REMINDED_ENOUGH = "reminded_enough"  # `remind_at_most` reminders were sent there
    NO_DESTINATION = "no_destination"  # the destination is no longer configured
    DELIVERED = "delivered"  # the provider has it
    NOT_THERE = "not_there"  # the provider was asked and does not have it: it may be sent again


# What keeps a message from being said at its time.
HOLDING = frozenset({DecisionReason.QUIET_HOURS, DecisionReason.ACKNOWLEDGED, DecisionReason.SILENCED})


class DeliveryStatus(StrEnum):
    """Where a delivery stands; reconciler/tables.py says who puts it there and who takes it out."""

    PENDING = "pending"  # planned, or to be tried again at `next_attempt_at`
    LEASED = "leased"  # a process is sending it; after a crash another one takes it over when the lease is past
    SENT = "sent"  # the provider has it
    UNKNOWN = "unknown"  # the provider may have it, and is asked about it
    DEAD = "dead"  # not tried again without a person (`handbell redrive`)
    CANCELLED = "cancelled"  # no longer to be said; the reason says why


class AttemptOutcome(StrEnum):
    """How one try ended, or what the provider said when it was asked about one."""

    SENT = "sent"  # the provider took it
    TEMPORARY = "temporary"  # nothing was accepted; it is tried again within the bounds
    PERMANENT = "permanent"  # refused; trying again changes nothing until a person acts
    UNKNOWN = "unknown"  # it was handed over, and the answer was lost
    FOUND = "found"  # asked: the earlier try had arrived
    ABSENT = "absent"  # asked: it is not there, and may be sent again
    UNANSWERED = "unanswered"  # the provider could not be asked


class Door(StrEnum):
    """By which way an observation came in; stored with every change of state."""

    HINT = "hint"  # a hint named the session, and its source was asked
    SWEEP = "sweep"  # a page of a sweep showed it
    VERIFY = "verify"  # a sweep asked about what its pages did not show
    PUSH = "push"  # the agent pushed it over HTTP
    DELIVERY = "delivery"  # the source was asked just before a message
