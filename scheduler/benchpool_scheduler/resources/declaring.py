"""How a custom resource is declared: msgspec Structs, rules beside them, columns for people.

A Struct's docstring and each field's ``Meta(description=...)`` become what ``kubectl explain``
prints. ``rules`` of a Struct are CEL expressions that the API server checks, each with the sentence
that people read when it does not hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.kubernetes import API_VERSION, GROUP, VERSION, Kind

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
"""Extra of a field whose inside has no fixed shape."""

SCALAR_VALUES = Meta(extra_json_schema=OPEN)


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL expression that must hold, and the sentence for people when it does not.

    Attributes:
        text: What is wrong and what to do.
        field: The path it is about, e.g. ``.minWorkers``.
    """

    rule: str
    text: str
    field: str = ""


RULES = "x-kubernetes-validations"


def ruled(by: Iterable[Rule]) -> dict[str, Any]:
    """Return rules as the API server wants them: the extra of a field, or of a whole schema.

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
    """A column of ``kubectl get``; ``wide`` ones come with ``-o wide`` only."""

    name: str
    path: str
    type: Literal["string", "integer", "number", "boolean", "date"] = "string"
    wide: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Resource:
    """A custom resource.

    Attributes:
        kind: Its names and scope. ``spec``: the Struct of what people write. ``status``: of what
            benchpool answers.
        words: Short names for kubectl.
        text: What it is, in a sentence or two.
        rules: Over the whole object, where ``self.spec`` and ``self.metadata.name`` are known.
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
    """Return a kind of our group."""
    return Kind(GROUP, VERSION, plural, name, namespaced=namespaced)


class ObjectMeta(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What we read and write of an object's ``metadata``."""

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
    """Return an object as it is sent.

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
    """A standard condition of Kubernetes."""

    type: Annotated[str, Meta(min_length=1, max_length=316)]
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Meta(min_length=1, max_length=1024)]
    message: Annotated[str, Meta(max_length=32768)]
    last_transition_time: Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
    observed_generation: Annotated[int, Meta(ge=0)] = 0
