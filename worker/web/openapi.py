"""The handoff as an OpenAPI 3.1 document, made from the models that check it."""

from typing import Any

from pydantic.json_schema import models_json_schema

from sinks.emit.version import __version__
from worker.web.models import MAX_REFERENCES, Observations, Reconciliation, ReferencesQuery
from worker.web.refusals import STATUSES, Code

_REFUSALS_OF_ALL = (Code.INVALID_TOKEN, Code.RATE_LIMITED, Code.DATABASE_BUSY)
_BODY_REFUSALS = (Code.INVALID_BODY, Code.BODY_TOO_LARGE, Code.BODY_TOO_SLOW)
_PLACE = "#/components/schemas/"


def handoff_schema() -> dict[str, Any]:
    """Return the document; the same at every call."""
    _, models = models_json_schema(
        [(Observations, "validation"), (Reconciliation, "validation")], ref_template=_PLACE + "{model}"
    )
    schemas: dict[str, Any] = {**models["$defs"], "Refusal": _refusal()}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Handbell: cayu.human-attention-handoff/v1", "version": __version__},
        "paths": {
            "/handoff/{namespace}/state": {
                "get": _operation(
                    "state", _object(scan_cursor=_nullable(_text()), reconcile_interval_seconds=_number())
                )
            },
            "/handoff/{namespace}/references": {
                "get": _operation(
                    "references",
                    _object(items=_list(_reference()), next_after=_nullable(_text())),
                    query=_query(),
                    refusals=(Code.INVALID_QUERY,),
                )
            },
            "/handoff/{namespace}/observations": {
                "post": _operation(
                    "observations",
                    _object(accepted=_whole(), verify=_list(_reference())),
                    body="Observations",
                    refusals=(*_BODY_REFUSALS, Code.IDENTITY_MISMATCH),
                )
            },
            "/handoff/{namespace}/reconciliations": {
                "post": _operation(
                    "reconciliations",
                    _object(ok={"type": "boolean"}),
                    body="Reconciliation",
                    refusals=_BODY_REFUSALS,
                )
            },
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(
    name: str,
    answer: dict[str, Any],
    *,
    body: str | None = None,
    query: list[dict[str, Any]] | None = None,
    refusals: tuple[Code, ...] = (),
) -> dict[str, Any]:
    namespace = {"name": "namespace", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
    responses: dict[str, Any] = {"200": {"description": "done, and committed", "content": _json(answer)}}
    for code in (*_REFUSALS_OF_ALL, *refusals):
        responses[str(STATUSES[code])] = {"description": code.value, "content": _json({"$ref": _PLACE + "Refusal"})}
    operation: dict[str, Any] = {
        "operationId": name,
        "parameters": [namespace, *(query or [])],
        "responses": responses,
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _json({"$ref": _PLACE + body})}
    return operation


def _query() -> list[dict[str, Any]]:
    properties = ReferencesQuery.model_json_schema()["properties"]
    kinds: dict[str, dict[str, Any]] = {
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_REFERENCES, "default": 100},
        "after": {"type": "string", "pattern": "^[0-9]{1,18}$"},
        "session_id": {"type": "string", "minLength": 1, "maxLength": 2048},
    }
    assert kinds.keys() == properties.keys(), "the query's model and its document differ"
    return [{"name": name, "in": "query", "required": False, "schema": schema} for name, schema in kinds.items()]


def _refusal() -> dict[str, Any]:
    code = {"type": "string", "enum": [code.value for code in Code]}
    return _object(detail=_object(code=code, message=_text()))


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": sorted(properties), "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": 200}


def _reference() -> dict[str, Any]:
    return {"$ref": _PLACE + "ReferenceIn"}


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _text() -> dict[str, Any]:
    return {"type": "string"}


def _number() -> dict[str, Any]:
    return {"type": "number"}


def _whole() -> dict[str, Any]:
    return {"type": "integer", "minimum": 0}
