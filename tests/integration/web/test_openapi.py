"""The served document says what the receiver does: no generated request, right or wrong, makes it fail."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.support.handoff import TOKEN
from tests.support.handoff_server import receiver

HEADERS = {"Authorization": f"Bearer {TOKEN}"}
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
EXAMPLES = 30


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_generated_requests_never_make_it_fail(migrated_postgres_url: str, mode: GenerationMode) -> None:
    """On PostgreSQL, which refuses more than SQLite: NUL, lone surrogates, numbers beyond its range."""
    called = set()
    with receiver(migrated_postgres_url) as running:
        schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json")
        for found in schema.get_all_operations():
            operation = found.ok()

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
            def send(case: Case) -> None:
                case.path_parameters = {"namespace": "prod"}
                case.headers = {}
                case.cookies = {}
                response = case.call(headers=HEADERS)
                called.add((case.path, response.status_code))
                case.validate_response(response, checks=CHECKS)

            send()

    assert {path.rsplit("/", 1)[1] for path, _ in called} == {
        "state",
        "references",
        "observations",
        "reconciliations",
    }
