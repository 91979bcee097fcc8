"""The page on the file of ``benchpool serve -f``, and its JSON schema, from its keys."""

from __future__ import annotations

import json
from typing import Any

from benchpool_scheduler.client import service_documents

_INTRO = """\
# File of a service

[`benchpool serve -f FILE`](../howto/serve-a-model.md#as-a-file) reads a YAML file with the keys \
below. It needs exactly one of `script`, `module` and `command`. The other keys are the keywords \
of `benchpool.serve`. Editors and checks can use the schema \
[service.schema.json](service.schema.json).

| key | value | meaning |
|---|---|---|
"""
_TYPES = {"integer": "whole number", "array": "list of text", "object": "mapping of text",
          "string": "text", "boolean": "true or false"}  # fmt: skip


def schema() -> str:
    """Return the JSON schema."""
    return json.dumps(service_documents.schema(), indent=2) + "\n"


def page() -> str:
    """Return the page."""
    found = service_documents.schema()["properties"]
    return _INTRO + "".join(_row(name, about) for name, about in found.items())


def _row(name: str, about: dict[str, Any]) -> str:
    kinds = [it for it in about.get("anyOf", [about]) if it["type"] != "null"]
    value = " or ".join(_kind(it) for it in kinds)
    default = about.get("default")
    usual = f" Default `{json.dumps(default)}`." if default not in (None, [], {}) else ""
    return f"| `{name}` | {value} | {about['description']}{usual} |\n"


def _kind(of: dict[str, Any]) -> str:
    word = _TYPES.get(of["type"], of["type"])
    least, most = of.get("minimum"), of.get("maximum")
    return word if least is None else f"{word}, {least} to {most}"
