"""Benches: leases of build GPUs, and the line of servers that wait for them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract.jobs import EstimatedStart, Reason
from benchpool_scheduler.contract.pool import AskedBack
from benchpool_scheduler.contract.scalars import Name


class NodeRequirement(Struct, frozen=True, forbid_unknown_fields=True):
    """What a label of a machine must be like, as Kubernetes says it; its name is metadata.name."""

    key: Annotated[str, Meta(min_length=1, max_length=317)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class Toleration(Struct, frozen=True, forbid_unknown_fields=True):
    """A taint of machines that a server bears, as Kubernetes says it; empty means any."""

    key: Annotated[str, Meta(max_length=317)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class LeaseRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The spawner asks for build GPUs (R2); ``spawn`` makes a repeat harmless.

    ``groups`` maps each group of the user to its group property ``benchpool.build_quota``
    (null when the group has none). On Kubernetes ``resource`` is what the GPUs are counted as
    (null for whole GPUs), and ``claim`` in ``namespace`` is the volume claim of the user's home:
    only nodes where that volume can be used are chosen, with all labels of ``node_selector``,
    meeting one of the alternatives of ``node_affinity``, where there are any, and whose taints are
    all borne by ``tolerations`` (null bears what jobs bear).
    """

    user: Name
    server: Annotated[str, Meta(max_length=100)]
    spawn: Annotated[str, Meta(min_length=1, max_length=100)]
    gpus: Annotated[int, Meta(ge=1, le=1024)]
    groups: dict[str, int | None] = {}
    gpu_models: list[str] = []
    resource: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    claim: Annotated[str, Meta(min_length=1, max_length=253)] | None = None
    namespace: Annotated[str, Meta(min_length=1, max_length=63)] | None = None
    node_selector: dict[str, str] = {}
    node_affinity: Annotated[list[list[NodeRequirement]], Meta(max_length=64)] = []
    tolerations: Annotated[list[Toleration], Meta(max_length=64)] | None = None


class Lease(Struct, frozen=True):
    """Build GPUs held by one notebook server; ``last_active``: the Hub saw it do something last.

    ``denied_devices`` is told to the spawner that starts the server, on one machine: major and
    minor numbers of the device files of other GPUs, which the server must not open.
    """

    id: str
    user: str
    server: str
    spawn: str
    gpus: list[str]
    since: datetime
    last_active: datetime | None = None
    denied_devices: list[tuple[int, int]] = []
    asked_back: AskedBack | None = None


class BenchWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``ask_back``: why, for the owner to read."""

    reason: Annotated[
        str,
        Meta(
            min_length=1, max_length=200, pattern=r"\S", description="Why, for its owner to read."
        ),
    ]


class LineRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The spawner asks for build GPUs and waits in line where none can be had now.

    Asking again keeps the place. ``since`` is when the server first asked, so that a scheduler
    that was restarted gives the same place again; ``hold_s`` is for how long the answer may be
    held back while nothing changes.
    """

    lease: LeaseRequest
    since: datetime | None = None
    hold_s: Annotated[float, Meta(ge=0, le=25)] = 0.0


class LinePlace(Struct, frozen=True):
    """A place in line for build GPUs; ``position`` 1 is the next.

    ``id`` is that of the lease that will be; giving it back leaves the line.
    """

    id: str
    position: int
    length: int
    since: datetime
    reason: Reason
    estimated_start: EstimatedStart | None


class InLine(Struct, frozen=True):
    """A server that waits in line for its build GPUs, as those see it who may see its bench."""

    user: str
    server: str
    gpus: int
    gpu_models: list[str]
    place: LinePlace


class LineAnswer(Struct, frozen=True):
    """Exactly one of both: the lease, or the place in line for it."""

    lease: Lease | None = None
    place: LinePlace | None = None
