"""What the documentation says of channels is what they do."""

import json
import re
from pathlib import Path

from worker.channels import webhook_event
from worker.channels.templates import FIELDS
from worker.channels.testing.samples import NOW, item, message

DOCS = Path(__file__).parents[3] / "docs"


def test_webhook_page_has_every_type_and_every_field() -> None:
    page = (DOCS / "webhook.md").read_text()
    event = json.loads(webhook_event.body(message(), NOW))
    digest = json.loads(webhook_event.body(message(item(), item(), purpose="digest:1"), NOW))

    for word in [*webhook_event.TYPES.values(), webhook_event.DIGEST_SETTLED, *event["data"], *digest["data"]]:
        assert f"`{word}`" in page, word


def test_example_of_the_webhook_page_has_the_shape_of_an_event() -> None:
    example = json.loads(re.findall(r"```json\n(.*?)```", (DOCS / "webhook.md").read_text(), re.DOTALL)[0])
    event = json.loads(webhook_event.body(message(), NOW))

    assert example.keys() == event.keys()
    assert example["data"].keys() == event["data"].keys()


def test_slack_page_has_every_field_of_a_template() -> None:
    page = (DOCS / "slack.md").read_text()

    assert all(f"`{field}`" in page for field in FIELDS)
