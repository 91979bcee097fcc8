"""The OpenAPI document of the Jupyter server extension's own operations.

The extension forwards all other requests under its prefix to the pool, whose document is
``reference/openapi.json``. The front end's types are made from both.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from benchpool.server.bench.bench_state import BenchNow
from benchpool.server.requests import (
    ExampleNotebook,
    Preparation,
    ResultFiles,
    SendRequest,
    SentJob,
)
from benchpool_scheduler import __version__
from benchpool_scheduler.contract import ErrorAnswer, Job
from benchpool_scheduler.contract.field_types import clean_descriptions
from benchpool_scheduler.contract.schedules import Schedule

_OPERATIONS: tuple[tuple[str, str, str, type | None, type, int], ...] = (
    ("prepare", "post", "Return what would be sent, and why", SendRequest, Preparation, 200),
    ("send", "post", "Send a job", SendRequest, Job, 201),
    ("schedule", "post", "Send a job at set times", SendRequest, Schedule, 201),
    ("result", "get", "Return where the results of a job are", None, ResultFiles, 200),
    ("sent", "get", "Return the submission of a job", None, SentJob, 200),
    ("example", "post", "Return the path of the example notebook", None, ExampleNotebook, 200),
    ("bench", "get", "Return the state of the bench and what happens next", None, BenchNow, 200),
    ("bench/keep", "post", "Keep an idle bench for some time", None, BenchNow, 200),
    ("bench/give-back", "post", "Release the GPUs of the bench", None, BenchNow, 200),
)
"""Name and path, method, summary, body, response, status of a successful response."""


def text() -> str:
    """Return the document: sorted, ending in a line feed."""
    return json.dumps(document(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def document() -> dict[str, Any]:
    """Return the document as plain data."""
    types = {one for operation in _OPERATIONS for one in operation[3:5] if isinstance(one, type)}
    ordered = sorted({*types, ErrorAnswer}, key=lambda one: one.__name__)
    _, components = msgspec.json.schema_components(ordered, ref_template=_REF)
    return {
        "openapi": "3.1.0",
        "info": {"title": "benchpool in the Jupyter server", "version": __version__},
        "paths": {
            f"/{name}": {method: _operation(name, summary, body, answer, status)}
            for name, method, summary, body, answer, status in _OPERATIONS
        },
        "components": {"schemas": clean_descriptions(components)},
    }


_REF = "#/components/schemas/{name}"


def _operation(
    name: str, summary: str, body: type | None, answer: type, status: int
) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {
            str(status): {"description": summary, "content": _content(answer)},
            "default": {"description": "A refusal or a failure", "content": _content(ErrorAnswer)},
        },
    }
    if body is not None:
        operation["requestBody"] = {"required": True, "content": _content(body)}
    elif name in {"result", "sent"}:
        job = {"name": "job", "in": "query", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [job]
    return operation


def _content(type_: type) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _REF.format(name=type_.__name__)}}}
