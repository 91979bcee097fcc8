"""Tools built from the table of operations: names, closed schemas, and their calls. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from inspect import getdoc
from typing import Any

import msgspec

from benchpool_scheduler.client import Call, LogRange
from benchpool_scheduler.contract.field_types import clean_descriptions
from benchpool_scheduler.contract.operation import PARTS, Given, NoQuery, Operation
from benchpool_scheduler.contract.operations import OPERATIONS, Operations
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused, TooLarge
from benchpool_scheduler.phrases import data_size

Schema = dict[str, Any]

ALLOW_WRITES = "--allow-writes"

MOST_BYTES = 256 * 1024
"""Size limit of an answer, in bytes. More would fill a model's context without informing it."""

USUAL: Mapping[str, Mapping[str, Any]] = {
    Operations.log.name: {"offset": -16 * 1024, "limit": 64 * 1024},
    Operations.status.name: {"gpus": False},
}
"""Default arguments that differ from those of the table, by name of tool."""


@dataclass(frozen=True, slots=True)
class Tool:
    """Tool for one operation.

    Attributes:
        name: Name of its operation.
        text: Description for the model.
        takes: JSON schema of its arguments, without other properties.
        writes: Whether it changes something.
    """

    operation: Operation[Any]
    name: str
    text: str
    takes: Schema
    writes: bool

    def call(self, arguments: Mapping[str, Any]) -> Call[Any]:
        """Return the request for these arguments.

        Errors: InvalidInput for an unknown or missing argument, and for an invalid ID. The service
        checks all other values.

        >>> offered()["why"].call({"job": "7k2m"}).path
        'jobs/7k2m/why'
        """
        known, one = self.takes["properties"], self.operation
        for name in arguments:
            if name not in known:
                takes = ", ".join(f"`{each}`" for each in known) or "nothing"
                raise InvalidInput(
                    f"`{self.name}` takes no `{name}`. It takes {takes}.", field=name
                )
        for name in self.takes["required"]:
            if name not in arguments:
                raise InvalidInput(f"`{self.name}` needs `{name}`.", field=name)
        given = {**USUAL.get(self.name, {}), **arguments}
        parts = {name: _part(name, given[name]) for name in one.parts}
        asked = {name: given[name] for name in _fields(one.query) if name in given}
        body = None
        if one.body is not None:
            body = {name: given[name] for name in _fields(one.body) if name in given}
        return one.ask(Given(parts, asked, body))


def offered(*, writes: bool = False) -> dict[str, Tool]:
    """Return the tools by name: read-only ones, and with ``writes`` all.

    >>> sorted(set(offered(writes=True)) - set(offered()))[:3]
    ['again', 'cancel', 'change']
    """
    all_ = (_tool(one) for one in OPERATIONS if one.tool)
    return {tool.name: tool for tool in all_ if writes or not tool.writes}


def chosen(tools: Mapping[str, Tool], name: str) -> Tool:
    """Return a tool. Errors: Refused if it is not offered, NotFound if it is unknown."""
    if name in tools:
        return tools[name]
    if name in offered(writes=True):
        raise Refused(
            f"`{name}` changes something, but this server is read-only. To allow changes, start it "
            f"with `benchpool mcp {ALLOW_WRITES}`.",
            code="reads-only",
        )
    raise NotFound(f"There is no tool `{name}`. Tools: {', '.join(tools)}.")


def answered(answer: Any) -> str:
    """Return an answer as JSON. Errors: TooLarge.

    >>> answered(LogRange(b"loss 0.5", attempt=1, offset=0, next=8, skipped=0, ended=False))
    '{"text":"loss 0.5","attempt":1,"offset":0,"next":8,"skipped":0,"ended":false}'
    """
    if isinstance(answer, LogRange):
        facts = asdict(answer)
        answer = {"text": facts.pop("data").decode(errors="replace"), **facts}
    text = msgspec.json.encode(answer)
    if len(text) > MOST_BYTES:
        raise TooLarge(
            f"The answer has {data_size(len(text))}; the limit is {data_size(MOST_BYTES)}. Request "
            "less with the arguments of this tool.",
            numbers={"bytes": len(text), "most": MOST_BYTES},
        )
    return text.decode()


def _tool(one: Operation[Any]) -> Tool:
    about = (getdoc(each) for each in (getattr(one, "fill", None), *_types(one)))
    return Tool(one, one.name, "\n\n".join(filter(None, about)), _schema(one), one.audited)


def _schema(one: Operation[Any]) -> Schema:
    types = _types(one)
    _, found = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    parts = clean_descriptions(json.loads(msgspec.json.encode(found)))
    properties: Schema = {
        name: {"type": "string", "pattern": f"^{PARTS[name]}$", "description": _ABOUT[name]}
        for name in one.parts
    }
    required = list(one.parts)
    for type_ in types:
        of = parts.pop(type_.__name__)
        properties.update(of["properties"])
        required += of.get("required", [])
    for name, value in USUAL.get(one.name, {}).items():
        properties[name] = {**properties[name], "default": value}
    schema = {"type": "object", "properties": properties, "required": required}
    return {**schema, "additionalProperties": False, **({"$defs": parts} if parts else {})}


_ABOUT = {
    "job": "ID of a job, or at least its first four characters.",
    "sweep": "ID of a sweep or of an array.",
    "schedule": "ID of a schedule.",
}


def _types(one: Operation[Any]) -> list[type[msgspec.Struct]]:
    return [type_ for type_ in (one.query, one.body) if type_ not in (None, NoQuery)]


def _fields(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    return struct.__struct_encode_fields__


def _part(name: str, value: object) -> str:
    if isinstance(value, str) and re.fullmatch(PARTS[name], value):
        return value
    raise InvalidInput(
        f"{value!r:.60} is not the ID of a {name}. `{name}s` lists them.", field=name
    )
