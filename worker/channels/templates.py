"""How a deployment words a request: one Jinja2 sentence over a closed set of content-free fields, sandboxed.

The template's own text is the operator's and trusted; every value it prints is escaped for the channel. What
the sentence says is never alone: the state of a settled request and the number of a reminder are put before it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import StrictUndefined, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from config.option_errors import unknown_key_text
from reconciler.states import SUMMARIES, AttentionState, Evidence, Kind
from worker.channels import text
from worker.channels.protocol import Item

# What a sentence may be long, in UTF-16 units: our own choice, below every channel's limit for one text.
MAX_SENTENCE_UNITS = 500

# Everything a template may print, with what it means; documented from here.
FIELDS = {
    "namespace": "the runtime's name in Handbell",
    "attention_id": "the request's identity",
    "kind": "user_input, tool_approval, manual_recovery or agent_input",
    "summary": "the runtime's fixed summary of the kind",
    "state": "active, unavailable, resolved, cancelled, superseded or expired",
    "reason": "the evidence that the state rests on",
    "agent_name": "who asks, may be empty",
    "requester": "for whom it asks, may be empty",
    "link": "where to answer, may be empty",
    "first_seen_at": "when Handbell learned of it (a datetime in UTC)",
    "state_changed_at": "when the state last changed (a datetime in UTC)",
}

Sentence = Callable[[Item], str]

_INSTANT_OF_TRIAL = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Templated:
    """A sentence made by the deployment's template; falls back to the fixed summary where it cannot be rendered."""

    render: Callable[[Item], str]
    escape: text.Escape

    def __call__(self, item: Item) -> str:
        """Return the sentence about `item`, escaped, on one line, not empty."""
        try:
            said = text.one_line(self.render(item))
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, AttributeError):
            said = ""
        return text.cut(said, MAX_SENTENCE_UNITS, is_markup=True) or fixed_sentence(self.escape)(item)


def fixed_sentence(escape: text.Escape) -> Sentence:
    """Return the default wording: the runtime's own fixed summary."""
    return lambda item: escape(text.cut(text.one_line(item.summary) or SUMMARIES[item.kind], MAX_SENTENCE_UNITS))


def sentence(template: str | None, escape: text.Escape) -> Sentence:
    """Return how an item is said: by `template` (checked by `check_template`), else by the fixed summary."""
    return fixed_sentence(escape) if template is None else Templated(_renderer(template, escape), escape)


def check_template(template: str) -> str:
    """Return `template` if it can be rendered for every state, else raise ValueError with one line."""
    environment = ImmutableSandboxedEnvironment()
    try:
        used = meta.find_undeclared_variables(environment.parse(template))
        for unknown in sorted(used - FIELDS.keys()):
            raise ValueError(f"{unknown}: {unknown_key_text(unknown, list(FIELDS)).replace('key', 'field', 1)}")
        render = _renderer(template, text.as_is)
        for state in AttentionState:
            render(_trial_item(state, None))
            render(_trial_item(state, "x"))
    except TemplateError as error:
        raise ValueError(f"cannot be rendered: {text.one_line(str(error))}") from None
    except (TypeError, ArithmeticError, LookupError, AttributeError) as error:
        raise ValueError(f"cannot be rendered: {type(error).__name__}") from None
    return template


def _renderer(template: str, escape: text.Escape) -> Callable[[Item], str]:
    def shown(value: object) -> str:
        return "" if value is None else escape(text.one_line(str(value)))

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, finalize=shown, autoescape=False)
    compiled = environment.from_string(template)
    return lambda item: compiled.render({field: _value(item, field) for field in FIELDS})


def _value(item: Item, field: str) -> object:
    value = getattr(item, field)
    return text.one_line(str(value)) if isinstance(value, str) else value


def _trial_item(state: AttentionState, optional: str | None) -> Item:
    return Item(
        namespace="x",
        attention_id="x",
        kind=Kind.USER_INPUT,
        summary="x",
        state=state,
        reason=Evidence.CURRENT_ACTION.value,
        agent_name=optional,
        requester=optional,
        link=optional,
        first_seen_at=_INSTANT_OF_TRIAL,
        state_changed_at=_INSTANT_OF_TRIAL,
    )
