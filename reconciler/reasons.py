"""Why somebody is told, told later, or not told: a closed set, stored with every decision and documented."""

from enum import StrEnum


class Verdict(StrEnum):
    """What was decided about one message."""

    PLANNED = "planned"
    POSTPONED = "postponed"
    CANCELLED = "cancelled"
    SUPPRESSED = "suppressed"


class DecisionReason(StrEnum):
    """The reason of a verdict, and of a delivery's present status where no provider has failed."""

    ROUTED = "routed"  # a route names the destination
    SETTLED = "settled"  # the request is over; who was told of it is told that
    NO_ROUTE = "no_route"  # no route matches the request
    SETTLED_BEFORE_SENDING = "settled_before_sending"  # it was over before the message went
    NOTHING_WAS_OPENED = "nothing_was_opened"  # nobody was told of it there, so nobody is told of its end
    WAITS_FOR_OPENING = "waits_for_opening"  # a settle never overtakes its opening
    SOURCE_UNAVAILABLE = "source_unavailable"  # the source, asked just before, could not say that it is active
    NOT_CONFIRMED_LATELY = "not_confirmed_lately"  # a push source's last word is older than `fresh_for`
    NO_SOURCE = "no_source"  # its namespace has no source that may be asked (none, or one that is refused)
    DISMISSED = "dismissed"  # a person put the request aside
    NO_DESTINATION = "no_destination"  # the destination is no longer configured
    OPERATOR_NOTICE = "operator_notice"  # Handbell's own notice to its operator
    FALLBACK = "fallback"  # another destination is broken and names this one
    REDRIVEN = "redriven"  # a person asked for another try
    DELIVERED = "delivered"  # the provider has it
    NOT_THERE = "not_there"  # the provider was asked and does not have it: it may be sent again


class DeliveryStatus(StrEnum):
    """Where a delivery stands; reconciler/tables.py says who puts it there and who takes it out."""

    PENDING = "pending"
    LEASED = "leased"
    SENT = "sent"
    UNKNOWN = "unknown"
    DEAD = "dead"
    CANCELLED = "cancelled"


class AttemptOutcome(StrEnum):
    """How one try ended, or what the provider said when it was asked about one."""

    SENT = "sent"
    TEMPORARY = "temporary"
    PERMANENT = "permanent"
    UNKNOWN = "unknown"
    FOUND = "found"  # asked: the earlier try had arrived
    ABSENT = "absent"  # asked: it is not there
    UNANSWERED = "unanswered"  # the provider could not be asked


class Door(StrEnum):
    """By which way an observation came in; stored with every change of state."""

    HINT = "hint"
    SWEEP = "sweep"
    VERIFY = "verify"
    PUSH = "push"
    DELIVERY = "delivery"
