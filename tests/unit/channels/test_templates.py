"""A deployment's sentence is sandboxed, closed over content-free fields, and never keeps a message from being sent."""

import pytest

from worker.channels import text
from worker.channels.templates import FIELDS, check_template, sentence
from worker.channels.testing.samples import item


def test_template_prints_fields_escaped_and_its_own_text_as_it_is() -> None:
    said = sentence("<!here> {{ agent_name }} waits since {{ first_seen_at.strftime('%H:%M') }}", text.escape_mrkdwn)

    assert said(item(agent_name="<!channel>")) == "<!here> &lt;!channel&gt; waits since 09:25"


def test_every_field_can_be_printed() -> None:
    template = " ".join(f"{{{{ {field} }}}}" for field in FIELDS)

    assert check_template(template) == template
    assert sentence(template, text.as_is)(item()).startswith("prod attention_")


@pytest.mark.parametrize(
    ("template", "line"),
    [
        ("{{ agent }}", 'agent: unknown field; did you mean "agent_name"?'),
        ("{{ question }}", "question: unknown field; known are: agent_name, attention_id"),
        ("{{ agent_name", "cannot be rendered: unexpected end of template"),
        ("{{ ''.__class__.__mro__ }}", "cannot be rendered: access to attribute '__class__'"),
        ("{% include 'x' %}", "cannot be rendered: TypeError"),
        ("{{ 1 / 0 }}", "cannot be rendered: ZeroDivisionError"),
        ("{{ range(10000000) | list }}", "cannot be rendered: OverflowError"),
        ("{{ agent_name + 'x' }}", "cannot be rendered: TypeError"),
    ],
)
def test_template_that_cannot_serve_is_refused_in_one_line(template: str, line: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_template(template)

    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_template_that_fails_or_says_nothing_falls_back_to_the_summary() -> None:
    fails = sentence("{% if agent_name == 'b' %}{{ agent_name.nothing.here }}{% endif %}", text.as_is)

    assert fails(item(agent_name="b")) == "Tool approval required."
    assert fails(item(agent_name="c")) == "Tool approval required."


def test_template_output_is_one_bounded_line() -> None:
    said = sentence("{{ agent_name }}\n{% for n in range(900) %}&amp;{% endfor %}", text.escape_mrkdwn)(item())

    assert "\n" not in said
    assert text.units(said) <= 500
    assert said.endswith("&amp;…")
