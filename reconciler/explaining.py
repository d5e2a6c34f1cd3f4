"""Says to the reader of a message why he is told, in one content-free sentence."""

from reconciler.plan.rows import number_of
from reconciler.routes import Route


def explanation(route: Route, destination: str, purpose: str) -> str:
    """Return the sentence for an opening, a reminder or an escalation; it names the route that decided."""
    if destination not in route.destinations:
        return f"You are told because {route.name} names a destination that is broken, and {destination} stands in."
    if number_of(purpose, "reminder"):
        return f"You are told because nobody has answered since the last message ({route.name})."
    step = number_of(purpose, "escalation")
    if step:
        return f"You are told because nobody has answered for a while ({route.name}, step {step})."
    return f"You are told because {route.name} names {destination}."
