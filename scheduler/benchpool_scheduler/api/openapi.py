"""OpenAPI document, generated from the table of operations and the declared types.

``GET /api/v1/openapi.json`` returns it. The reference pages are generated from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any

import msgspec

from benchpool_scheduler import __version__, contract
from benchpool_scheduler.contract.field_types import clean_descriptions
from benchpool_scheduler.contract.operation import PARTS, Media, NoQuery, Operation, Who
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_scheduler.errors import BY_STATUS

Document = dict[str, Any]

_REF = "#/components/schemas/{name}"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DESCRIPTION = (
    "Jobs, logs, quota and leases of a benchpool. Times are RFC 3339 with time zone, durations in "
    "seconds, sizes in bytes. Every error response is an ErrorAnswer."
)


def document(known: Sequence[Operation[Any]] = OPERATIONS) -> Document:
    """Return the document for these operations, by default for all."""
    types = _types(known)
    parts = msgspec.json.schema_components(types, ref_template=_REF)
    # The schema shows a default of () as a list.
    schemas, components = clean_descriptions(json.loads(msgspec.json.encode(parts)))
    schema_of = dict(zip(map(repr, types), schemas, strict=True))
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": _DIALECT,
        "info": {
            "title": "benchpool",
            "version": __version__,
            "summary": "A GPU bench for every researcher and a training pool for all",
            "description": _DESCRIPTION,
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "servers": [{"url": f"/services/benchpool/api/{contract.API_VERSION}"}],
        "paths": _paths(known, schema_of),
        "components": {
            "schemas": components,
            "responses": {"Error": _error_answer()},
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Token of the Hub. Schemes: `token` and `Bearer`.",
                }
            },
        },
    }


def text() -> str:
    """Return the document as written to files: sorted keys, ending in a line feed."""
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _types(known: Sequence[Operation[Any]]) -> list[Any]:
    found: dict[str, Any] = {repr(contract.ErrorAnswer): contract.ErrorAnswer}
    for one in known:
        answer = one.answer if one.gives is Media.JSON else None
        for type_ in (one.body, answer, *one.events.values()):
            if type_ not in (None, NoneType):
                found[repr(type_)] = type_
    return list(found.values())


def _paths(known: Sequence[Operation[Any]], schema_of: Mapping[str, Any]) -> Document:
    paths: Document = {}
    for one in known:
        paths.setdefault(f"/{one.path}", {})[one.method.lower()] = _operation(one, schema_of)
    return paths


def _operation(one: Operation[Any], schema_of: Mapping[str, Any]) -> Document:
    operation: Document = {
        "operationId": one.name,
        "summary": one.summary,
        "x-who": one.who.value,
        "parameters": [*_path_parameters(one), *_query_parameters(one)],
        "responses": _responses(one, schema_of),
        "security": [] if one.who is Who.PUBLIC else [{"token": []}],
    }
    if one.events:
        operation["x-events"] = {name: schema_of[repr(type_)] for name, type_ in one.events.items()}
    if one.takes is not None:
        schema = schema_of[repr(one.body)] if one.body is not None else _opaque(one.takes)
        operation["requestBody"] = {
            "required": True,
            "content": {one.takes.value: {"schema": schema}},
        }
    return operation


def _responses(one: Operation[Any], schema_of: Mapping[str, Any]) -> Document:
    schema = schema_of.get(repr(one.answer)) if one.gives is Media.JSON else _opaque(one.gives)
    good: Document = {}
    for status, what in one.statuses.items():
        good[str(status)] = {"description": what}
        if status != 204:
            good[str(status)]["content"] = {one.gives.value: {"schema": schema}}
    return {**good, "default": {"$ref": "#/components/responses/Error"}}


def _error_answer() -> Document:
    statuses = ", ".join(str(status) for status in sorted(BY_STATUS))
    return {
        "description": f"One sentence, a code, the field and the numbers; status {statuses}.",
        "content": {"application/json": {"schema": {"$ref": _REF.format(name="ErrorAnswer")}}},
    }


def _path_parameters(one: Operation[Any]) -> list[Document]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": f"^{PARTS[name]}$"},
        }
        for name in one.parts
    ]


def _query_parameters(one: Operation[Any]) -> list[Document]:
    if one.query is NoQuery:
        return []
    (_,), parts = msgspec.json.schema_components([one.query], ref_template="{name}")
    properties = parts[one.query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": _inline(schema, parts)}
        for name, schema in properties.items()
    ]


def _inline(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Replace schema references by their schemas: query parameters share none."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return parts[schema["$ref"]]
        return {key: _inline(value, parts) for key, value in schema.items()}
    return [_inline(each, parts) for each in schema] if isinstance(schema, list) else schema


def _opaque(kind: Media) -> Document:
    return {} if kind is Media.BYTES else {"type": "string"}
