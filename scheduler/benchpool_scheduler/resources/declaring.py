"""Declaration of custom resources: msgspec Structs with rules and printer columns.

A Struct's docstring and each field's ``Meta(description=...)`` become the output of ``kubectl
explain``. ``rules`` of a Struct are CEL expressions that the API server checks. Each has an error
message for users.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.kubernetes import API_VERSION, GROUP, VERSION, Kind

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
"""Schema extra of a field whose content has no fixed shape."""

SCALAR_VALUES = Meta(extra_json_schema=OPEN)


@dataclass(frozen=True, slots=True)
class Rule:
    """CEL expression that must hold, and the error message.

    Attributes:
        text: Cause and remedy.
        field: Path that the rule is about, e.g. ``.minWorkers``.
    """

    rule: str
    text: str
    field: str = ""


RULES = "x-kubernetes-validations"


def ruled(by: Iterable[Rule]) -> dict[str, Any]:
    """Return rules as a schema extra of the API server, for a field or a whole schema.

    >>> ruled([Rule("self > 0", "Must be more.")])
    {'x-kubernetes-validations': [{'rule': 'self > 0', 'message': 'Must be more.'}]}
    """
    written: list[dict[str, str]] = []
    for one in by:
        rule = {"rule": one.rule, "message": one.text}
        if one.field:
            rule["fieldPath"] = one.field
        written.append(rule)
    return {RULES: written}


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """Column of ``kubectl get``; ``wide`` columns are shown with ``-o wide`` only."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    wide: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """Custom resource.

    Attributes:
        kind: Names and scope.
        spec: Struct of the part that users write.
        status: Struct of the part that benchpool writes.
        words: Short names for kubectl.
        text: Description in a sentence or two.
        rules: Rules on the whole object, where ``self.spec`` and ``self.metadata.name`` are known.
        scale: Paths of the scale subresource: wanted, present, selector.
    """

    kind: Kind
    spec: type[Struct]
    status: type[Struct]
    words: tuple[str, ...]
    text: str
    columns: tuple[PrinterColumn, ...] = ()
    rules: tuple[Rule, ...] = ()
    scale: tuple[str, str, str] | None = None
    singular: str = field(default="")


def kind(plural: str, name: str, *, namespaced: bool) -> Kind:
    """Return a kind of benchpool's API group."""
    return Kind(GROUP, VERSION, plural, name, namespaced=namespaced)


class ObjectMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Fields of an object's ``metadata`` that benchpool reads and writes."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


def envelope(of: Kind, metadata: ObjectMeta, **parts: Any) -> dict[str, Any]:
    """Return an object as it is sent to the API server.

    >>> envelope(kind("projects", "Project", namespaced=False), ObjectMeta("a"), spec={})["kind"]
    'Project'
    """
    return {"apiVersion": API_VERSION, "kind": of.kind, "metadata": metadata, **parts}


# --------------------------------------------------------------------------- shared fields

Name100 = Annotated[str, Meta(min_length=1, max_length=100)]
Person = Annotated[str, Meta(min_length=1, max_length=253)]
Gpus = Annotated[int, Meta(ge=0, le=1_000_000)]
Amount = Annotated[float, Meta(ge=0, le=1e9)]
Seconds = Annotated[float, Meta(ge=0, le=31_622_400)]
GpuName = Annotated[str, Meta(min_length=1, max_length=253)]
NodeName = Annotated[str, Meta(min_length=1, max_length=253)]
Code = Annotated[str, Meta(max_length=100)]
Sentence = Annotated[str, Meta(max_length=4096)]
Numbers = Annotated[dict[str, int | float | str | None], SCALAR_VALUES]


class Condition(Struct, frozen=True, rename="camel"):
    """Standard Kubernetes condition."""

    type: Annotated[str, Meta(min_length=1, max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1, max_length=1024)]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    observed_generation: Annotated[int, Meta(ge=0)] = 0
