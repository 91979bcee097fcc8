"""Services as YAML files: the keywords of ``benchpool.serve`` as keys, and the program to run.

Keys for pool resources have the types and descriptions of a job's fields.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from benchpool_scheduler.client.service_requests import TAKEN
from benchpool_scheduler.contract import FilePath, field_types
from benchpool_scheduler.contract.options import OPTIONS, SubmitOption
from benchpool_scheduler.contract.scalars import Argument
from benchpool_scheduler.contract.serving import SERVICE_NAME, ServiceRequest
from benchpool_scheduler.contract.submission import JobSubmission
from benchpool_scheduler.errors import InvalidInput

ACCESS = r"^(owner|project|everyone|group:.+)$"
ENTRIES = ("script", "module", "command")
"""Keys of the program to run. Exactly one is required."""
_DESCRIPTIONS = {"env": "Variables of the program, by name."}
"""Descriptions of fields whose option text applies to a terminal only."""


def _about(text: str, **bounds: Any) -> Meta:
    return Meta(description=text, **bounds)


def _asked() -> Iterator[tuple[str, Any, Any]]:
    """Yield a key for each field of a job that a service takes."""
    fields = {it.name: it for it in msgspec.structs.fields(JobSubmission)}
    for option in OPTIONS:
        if option.field not in TAKEN:
            continue
        field = fields[option.field]
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = msgspec.field(default_factory=field.default_factory)
        yield option.name, Annotated[field.type, _about(_words(option, field.type))], default


def _words(option: SubmitOption, type_: Any) -> str:
    remarks = (it.description for it in get_args(type_) if isinstance(it, Meta))
    return (
        _DESCRIPTIONS.get(option.field) or next((it for it in remarks if it), None) or option.help
    )


def _own(name: str) -> Any:
    """Return the type of a field of ``ServiceRequest``, with its description."""
    return next(it.type for it in msgspec.structs.fields(ServiceRequest) if it.name == name)


if TYPE_CHECKING:
    ServiceKeys = Struct
else:
    ServiceKeys = msgspec.defstruct(
        "ServiceKeys",
        [
            *_asked(),
            ("port", _own("port"), None),
            ("min", _own("min_replicas"), 1),
            (
                "max",
                Annotated[
                    _own("max_replicas") | None,
                    _about("Maximum number of replicas; by default that of min."),
                ],
                None,
            ),
            ("in_flight", _own("in_flight"), 8),
            ("readiness", _own("readiness"), "/"),
            ("keep_prefix", _own("keep_prefix"), False),
        ],
        kw_only=True,
        frozen=True,
    )
    """Keys that are fields of the contract, with their types and descriptions."""


class ServiceDocument(ServiceKeys, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Name, program, resources and access rights of a service."""

    name: Annotated[
        str, _about("Part of its address.", extra_json_schema={"pattern": f"^{SERVICE_NAME}$"})
    ]
    script: Annotated[FilePath | None, _about("Python file of this folder.")] = None
    module: Annotated[str | None, _about("Module, as after `python -m`.")] = None
    command: Annotated[
        Annotated[list[Argument], Meta(min_length=1, max_length=4096)] | None,
        _about("Command and its arguments; no shell reads them."),
    ] = None
    args: Annotated[list[Argument], _about("Arguments of script or module.")] = msgspec.field(
        default_factory=list
    )
    idle: Annotated[
        int | str, _about("With min 0: idle time before it sleeps, in seconds, or such as 15m.")
    ] = 900
    access: Annotated[
        str,
        _about(
            "Users who may open it: owner, project, group:NAME or everyone.",
            extra_json_schema={"pattern": ACCESS},
        ),
    ] = "owner"


OWN = ("port", "min", "max", "idle", "in_flight", "readiness", "access", "keep_prefix")
"""Keys that ``service_requests.request_of`` takes by the same names."""
ASKED = tuple(it.name for it in OPTIONS if it.field in TAKEN)
"""Keys that are options of ``submit``."""


def entry_of(document: ServiceDocument) -> list[str]:
    """Return the entry in the words of a terminal. Errors: InvalidInput.

    >>> entry_of(ServiceDocument(name="a", script="answer.py", args=["{port}"]))
    ['answer.py', '{port}']
    >>> entry_of(ServiceDocument(name="a", command=["serve", "-p", "{port}"]))
    ['--', 'serve', '-p', '{port}']
    """
    given = [it for it in ENTRIES if getattr(document, it) is not None]
    if len(given) != 1:
        present = " and ".join(given) if given else "none"
        raise InvalidInput(
            f"Set exactly one of {', '.join(ENTRIES)}. Set now: {present}.",
            field=given[-1] if given else "command",
        )
    if document.command is not None:
        if document.args:
            raise InvalidInput("args is for script and module. Put them into command.",
                               field="args")  # fmt: skip
        return ["--", *document.command]
    if document.module is not None:
        return ["-m", document.module, *document.args]
    return [document.script or "", *document.args]


def schema() -> dict[str, Any]:
    """Return the JSON schema of a service file, for editors and checks.

    >>> schema()["additionalProperties"], schema()["required"]
    (False, ['name'])
    """
    found = msgspec.json.schema(ServiceDocument)
    (document,) = found["$defs"].values()
    cleaned: dict[str, Any] = field_types.clean_descriptions(document)
    order = ("name", *ENTRIES, "args", *ASKED, *OWN)
    cleaned["properties"] = {name: cleaned["properties"][name] for name in order}
    one = [{"required": [it]} for it in ENTRIES]
    return {"$schema": found.get("$schema", DIALECT), **cleaned, "oneOf": one}


DIALECT = "https://json-schema.org/draft/2020-12/schema"
