"""The OpenAPI document, made from the table of routes and the declared types.

``GET /api/v1/openapi.json`` answers it; the reference pages are made from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchpool_scheduler import __version__, contract
from benchpool_scheduler.api.metrics import Traffic
from benchpool_scheduler.api.routing import PARTS, Kind, NoQuery, Route, Who
from benchpool_scheduler.api.stream import Timing
from benchpool_scheduler.api.table import routes
from benchpool_scheduler.errors import BY_STATUS

Document = dict[str, Any]

_REF = "#/components/schemas/{name}"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DESCRIPTION = (
    "Jobs, logs, quota and leases of a benchpool. Times are RFC 3339 with zone, durations seconds, "
    "sizes bytes. Every answer that is not a good one is an ErrorAnswer."
)


def document(table: Sequence[Route] | None = None) -> Document:
    """Return the document for these routes, by default for all."""
    known = routes(Traffic(), Timing()) if table is None else table
    types = _types(known)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REF)
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
                    "description": "A token of the Hub; the word `token` serves as `Bearer` does.",
                }
            },
        },
    }


def text() -> str:
    """Return the document as it is written to files: sorted, ending in a line feed."""
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _types(known: Sequence[Route]) -> list[Any]:
    found: dict[str, Any] = {repr(contract.ErrorAnswer): contract.ErrorAnswer}
    for route in known:
        for type_ in (route.body, route.returns, *route.events.values()):
            if type_ is not None:
                found[repr(type_)] = type_
    return list(found.values())


def _paths(known: Sequence[Route], schema_of: Mapping[str, Any]) -> Document:
    paths: Document = {}
    for route in known:
        paths.setdefault(f"/{route.path}", {})[route.method.lower()] = _operation(route, schema_of)
    return paths


def _operation(route: Route, schema_of: Mapping[str, Any]) -> Document:
    operation: Document = {
        "operationId": route.name,
        "summary": route.summary,
        "x-who": route.who.value,
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route, schema_of),
        "security": [] if route.who is Who.ANYBODY else [{"token": []}],
    }
    if route.events:
        operation["x-events"] = {
            name: schema_of[repr(type_)] for name, type_ in route.events.items()
        }
    if route.takes is not None:
        schema = schema_of[repr(route.body)] if route.body is not None else _opaque(route.takes)
        operation["requestBody"] = {
            "required": True,
            "content": {route.takes.value: {"schema": schema}},
        }
    return operation


def _responses(route: Route, schema_of: Mapping[str, Any]) -> Document:
    schema = schema_of[repr(route.returns)] if route.returns is not None else _opaque(route.gives)
    good: Document = {}
    for status, what in route.statuses.items():
        good[str(status)] = {"description": what}
        if status != 204:
            good[str(status)]["content"] = {route.gives.value: {"schema": schema}}
    return {**good, "default": {"$ref": "#/components/responses/Error"}}


def _error_answer() -> Document:
    statuses = ", ".join(str(status) for status in sorted(BY_STATUS))
    return {
        "description": f"One sentence, a code, the field and the numbers; status {statuses}.",
        "content": {"application/json": {"schema": {"$ref": _REF.format(name="ErrorAnswer")}}},
    }


def _path_parameters(route: Route) -> list[Document]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "pattern": f"^{PARTS[name]}$"},
        }
        for name in re.findall(r"\{(\w+)\}", route.path)
    ]


def _query_parameters(route: Route) -> list[Document]:
    if route.query is NoQuery:
        return []
    (_,), parts = msgspec.json.schema_components([route.query], ref_template="{name}")
    properties = parts[route.query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": _inline(schema, parts)}
        for name, schema in properties.items()
    ]


def _inline(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Put referenced schemas where they are used: a query has no shared ones."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return parts[schema["$ref"]]
        return {key: _inline(value, parts) for key, value in schema.items()}
    return [_inline(each, parts) for each in schema] if isinstance(schema, list) else schema


def _opaque(kind: Kind) -> Document:
    return {} if kind is Kind.BYTES else {"type": "string"}
