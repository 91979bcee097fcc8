"""``BuildLease``: build GPUs held by one notebook server of one user."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from msgspec import Meta, Struct

from benchpool_scheduler.resources.declaring import (
    Condition,
    GpuName,
    ObjectMeta,
    Person,
    PrinterColumn,
    Resource,
    Rule,
    kind,
)


class BuildLeaseSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """GPUs of a lease and their server (R1, R2). The scheduler writes it."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "self == oldSelf",
            "A build lease cannot change. Stop the server and start it again.",
        ),
    )

    user: Person
    spawn: Annotated[
        str, Meta(min_length=1, max_length=100, description="ID of one start of a server.")
    ]
    gpus: Annotated[tuple[GpuName, ...], Meta(max_length=1024)]
    since: datetime
    server: Annotated[
        str, Meta(max_length=100, description="Name of the server; empty for the default server.")
    ] = ""


class BuildLeaseStatus(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pod and node of the server."""

    pod: Annotated[str, Meta(max_length=253)] | None = None
    node: Annotated[str, Meta(max_length=253)] | None = None
    conditions: Annotated[tuple[Condition, ...], Meta(max_length=8)] = ()


class BuildLease(Struct, frozen=True):
    """BuildLease object as read from the API server."""

    metadata: ObjectMeta
    spec: BuildLeaseSpec


BUILD_LEASES = Resource(
    kind=kind("buildleases", "BuildLease", namespaced=True),
    spec=BuildLeaseSpec,
    status=BuildLeaseStatus,
    words=("bl",),
    text="Build GPUs held by one notebook server; its owner is never preempted.",
    columns=(
        PrinterColumn("User", ".spec.user"),
        PrinterColumn("Server", ".spec.server"),
        PrinterColumn("GPUs", ".spec.gpus"),
        PrinterColumn("Age", ".metadata.creationTimestamp", "date"),
    ),
)
