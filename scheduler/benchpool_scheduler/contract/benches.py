"""Benches: leases of build GPUs, and the queue of servers that wait for them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from benchpool_scheduler.contract import renamed
from benchpool_scheduler.contract.jobs import EstimatedStart, Reason
from benchpool_scheduler.contract.pool import ReclaimRequest
from benchpool_scheduler.contract.scalars import Name


class NodeRequirement(Struct, frozen=True, forbid_unknown_fields=True):
    """Requirement on a node's label, as in Kubernetes. ``metadata.name`` is its name."""

    key: Annotated[str, Meta(min_length=1, max_length=317)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] = []


class Toleration(Struct, frozen=True, forbid_unknown_fields=True):
    """Toleration of a node taint, as in Kubernetes. An empty key matches every taint."""

    key: Annotated[str, Meta(max_length=317)] = ""
    operator: Literal["Equal", "Exists"] = "Equal"
    value: str = ""
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class LeaseRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Request of the spawner for build GPUs (R2). ``spawn`` makes a repeat harmless.

    ``groups`` maps each group of the user to its group property ``benchpool.build_quota`` (null
    when the group has none).

    The other fields are for Kubernetes. ``resource`` is the resource name of the GPUs (null for
    whole GPUs). ``claim`` in ``namespace`` is the volume claim of the user's home, and only nodes
    that can use that volume are chosen. A node must have all labels of ``node_selector``, and meet
    one of the alternatives of ``node_affinity`` if there are any. ``tolerations`` must cover all
    taints of the node; null stands for the tolerations of jobs.
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
    """Build GPUs held by one notebook server. ``last_active`` is its last activity seen by the Hub.

    ``denied_devices`` is for the spawner that starts the server on one machine: major and minor
    numbers of the device files of other GPUs, which the server must not open.
    """

    id: str
    user: str
    server: str
    spawn: str
    gpus: list[str]
    since: datetime
    last_active: datetime | None = None
    denied_devices: list[tuple[int, int]] = []
    reclaim_request: ReclaimRequest | None = None
    asked_back: Annotated[ReclaimRequest | None, renamed.former("reclaim_request")] = None

    def __post_init__(self) -> None:
        renamed.agree(self, "reclaim_request", "asked_back")


class BenchWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``ask_back``: the reason, which is shown to the owner."""

    reason: Annotated[
        str,
        Meta(
            min_length=1, max_length=200, pattern=r"\S", description="Reason, shown to its owner."
        ),
    ]


class LineRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Request of the spawner for build GPUs that waits in the queue while none are free.

    A repeated request keeps the position. ``since`` is the time of the server's first request, so
    that a restarted scheduler restores the same position. ``hold_s`` is how long the answer may be
    delayed while nothing changes, in seconds.
    """

    lease: LeaseRequest
    since: datetime | None = None
    hold_s: Annotated[float, Meta(ge=0, le=25)] = 0.0


class LinePlace(Struct, frozen=True):
    """Position in the queue for build GPUs; ``position`` 1 is the next.

    ``id`` is that of the future lease. Releasing it leaves the queue.
    """

    id: str
    position: int
    length: int
    since: datetime
    reason: Reason
    estimated_start: EstimatedStart | None


class InLine(Struct, frozen=True):
    """Server that waits in the queue for build GPUs, for readers who may see its bench."""

    user: str
    server: str
    gpus: int
    gpu_models: list[str]
    place: LinePlace


class LineAnswer(Struct, frozen=True):
    """Either the lease or the position in the queue for it."""

    lease: Lease | None = None
    place: LinePlace | None = None
