"""Reference page of the custom resources, generated from their declarations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchpool_scheduler.contract.kubernetes import API_VERSION
from benchpool_scheduler.resources import policies, schema
from benchpool_scheduler.resources.declaring import Resource, Rule
from benchpool_scheduler.resources.definitions import RESOURCES
from benchpool_scheduler.resources.given import RULES
from benchpool_scheduler.resources.jobs import MAY_CHANGE, TRAINING_JOBS

INTRODUCTION = """# Custom resources

Group and version are `{version}`. `kubectl explain trainingjob.spec` prints the same, and
`kubectl get benchpool -A` all objects. Users write the fields under `spec`. Only benchpool's
scheduler writes the fields under `status`.
"""


def page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION.format(version=API_VERSION)]
    for resource in RESOURCES:
        parts.append(_section(resource))
    return "\n".join(parts)


def _section(resource: Resource) -> str:
    kind = resource.kind
    scope = "in a namespace" if kind.namespaced else "of the whole cluster"
    words = ", ".join(f"`{word}`" for word in (kind.plural, *resource.words))
    rows = [f"| `{name}` | {kind_} | {text} |" for name, kind_, text in _fields(resource.spec)]
    rules = [f"- {rule.text}" for rule in _rules(resource)]
    status = [f"| `{name}` | {kind_} | {text} |" for name, kind_, text in _fields(resource.status)]
    columns = ", ".join(column.name for column in resource.columns if not column.wide)
    wide = ", ".join(column.name for column in resource.columns if column.wide)
    also = f"; with `-o wide` also {wide}" if wide else ""
    return "\n".join(
        [
            f"## {kind.kind}\n",
            f"{resource.text} An object {scope}; its names in kubectl are {words}.\n",
            f"`kubectl get` shows {columns}{also}.\n",
            "### spec\n",
            "| field | value | what it means |\n|---|---|---|",
            *rows,
            *(["\nChecked by the API server:\n", *rules] if rules else []),
            "\n### status\n",
            "| field | value | what it means |\n|---|---|---|",
            *status,
            "",
        ]
    )


def _rules(resource: Resource) -> Iterator[Any]:
    yield from getattr(resource.spec, "rules", ())
    yield from resource.rules
    if resource is TRAINING_JOBS:
        yield from RULES
        yield Rule("", policies.SENTENCE.format(field="Of an accepted job, every field except "
                   f"{', '.join(sorted(MAY_CHANGE))}"))  # fmt: skip


def _fields(struct: Any) -> Iterator[tuple[str, str, str]]:
    whole = schema.structural(struct)
    yield from _rows(whole, "")


def _rows(whole: schema.Schema, above: str) -> Iterator[tuple[str, str, str]]:
    needed = set(whole.get("required", ()))
    for name, inside in whole["properties"].items():
        path = f"{above}{name}"
        text = _cell(inside.get("description", ""))
        if "default" in inside:
            text = f"{text} Default `{_literal(inside['default'])}`.".strip()
        if name in needed and not above:
            text = f"{text} Required.".strip()
        yield path, _kind(inside), text
        below = inside.get("items", inside)
        if "properties" in below and above.count(".") < 2:
            mark = "[]." if below is not inside else "."
            yield from _rows(below, path + mark)


def _kind(inside: schema.Schema) -> str:
    if "enum" in inside:
        return " ".join(f"`{word}`" for word in inside["enum"])
    if inside.get("x-kubernetes-int-or-string"):
        return "number or word"
    match inside.get("type"):
        case "array":
            return f"list of {_kind(inside['items'])}"
        case "object" if "additionalProperties" in inside:
            return f"map to {_kind(inside['additionalProperties'])}"
        case "integer":
            return f"whole number{_range(inside)}"
        case "number":
            return f"number{_range(inside)}"
        case "string" if inside.get("format") == "date-time":
            return "time"
        case "string" if "pattern" in inside:
            return f"`{_cell(inside['pattern'])}`"
        case other:
            return str(other)


def _range(inside: schema.Schema) -> str:
    least, most = inside.get("minimum"), inside.get("maximum")
    if most is not None and abs(most) < schema.MOST:
        return f", {_number(least or 0)} to {_number(most)}"
    return f" from {_number(least)}" if least is not None and abs(least) < schema.MOST else ""


def _number(value: float) -> str:
    return f"{int(value):,}".replace(",", " ") if value == int(value) else f"{value:g}"


def _literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
