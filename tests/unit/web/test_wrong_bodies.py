"""A body that is wrong in very many places is refused for the first of them, and holds up nobody else."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.handoff import active, body, reference
from worker.web.models import Observations
from worker.web.refusals import Code, Refused, refused_input

BIG = 100_000


def refused(content: dict[str, Any]) -> tuple[int, Refused]:
    with pytest.raises(ValidationError) as raised:
        Observations.model_validate_json(json.dumps(content))
    return raised.value.error_count(), refused_input(raised.value, Code.INVALID_BODY)


def test_wrong_observations_are_not_all_looked_at() -> None:
    count, said = refused({**body(), "observations": [0] * BIG})

    assert count < 300
    assert said.code is Code.INVALID_BODY


def test_unknown_fields_are_not_all_told() -> None:
    _, said = refused({**body(), **{f"x{number}": 0 for number in range(BIG)}})

    assert said.code is Code.INVALID_BODY
    assert len(said.message) < 100


def test_one_observation_too_many_is_said_to_be_that() -> None:
    _, said = refused(body(*(active(reference(number)) for number in range(1, 202))))

    assert said.code is Code.TOO_MANY_OBSERVATIONS
