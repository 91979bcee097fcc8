"""The benches: holders of GPUs with server and time, free GPUs, and waiting servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler.contract import BuildQuota, Gpu, InLine, Lease, Quota, ReclaimRequest
from benchpool_scheduler.phrases import count, ordinal, start_range
from benchpool_scheduler.web.pool_view import gpu_places, server_name
from benchpool_scheduler.web.words import Moment, moment, optional_moment


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One server and the GPUs it holds; ``active``: its last activity according to the Hub."""

    server: str
    gpus: str
    number: int
    since: Moment
    active: Moment | None = None
    idle: bool = False
    lease: str = ""
    asked: ReclaimRequest | None = None
    asked_at: Moment | None = None


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One user's bench: ``use`` is ``1 of 2 GPUs``, ``rule`` is the source of the quota (R2)."""

    user: str
    use: str
    free: int
    rule: str
    held: tuple[HeldRow, ...]


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A server in the queue for its GPUs; ``place`` is ``2nd of 5``."""

    key: str
    user: str
    server: str
    gpus: str
    place: str
    reason: str
    starts: str
    since: Moment


def line_view(waiting: Sequence[InLine], now: datetime) -> tuple[WaitingRow, ...]:
    """Return a row per server in the queue, the next one first."""
    return tuple(
        WaitingRow(
            key=one.place.id,
            user=one.user,
            server=server_name(one.server),
            gpus=" or ".join([count(one.gpus, "GPU"), *one.gpu_models]).replace(" or ", " ", 1),
            place=f"{ordinal(one.place.position)} of {one.place.length}",
            reason=one.place.reason.text,
            starts=start_range(one.place.estimated_start, now),
            since=moment(one.place.since, now),
        )
        for one in waiting
    )


def benches_view(
    leases: Sequence[Lease], quotas: Sequence[Quota], gpus: Sequence[Gpu], now: datetime
) -> tuple[BenchRow, ...]:
    """Return a row per user with a quota or a lease, by name."""
    return tuple(
        _bench(quota.user, quota.build, leases, gpus, now)
        for quota in sorted(quotas, key=lambda quota: quota.user)
    )


def _bench(
    user: str, build: BuildQuota, leases: Sequence[Lease], gpus: Sequence[Gpu], now: datetime
) -> BenchRow:
    own = sorted((lease for lease in leases if lease.user == user), key=lambda lease: lease.server)
    held = sum(len(lease.gpus) for lease in own)
    return BenchRow(
        user=user,
        use=f"{held} of {count(build.quota, 'GPU')}",
        free=build.free,
        rule=build.rule,
        held=tuple(
            HeldRow(
                server=server_name(lease.server),
                gpus=gpu_places(gpus, lease.gpus),
                number=len(lease.gpus),
                since=moment(lease.since, now),
                lease=lease.id,
                asked=lease.reclaim_request,
                asked_at=optional_moment(
                    lease.reclaim_request.at if lease.reclaim_request else None, now
                ),
                active=optional_moment(lease.last_active, now),
                idle=any(gpu.uuid in lease.gpus for gpu in gpus if gpu.idle_since is not None),
            )
            for lease in own
        ),
    )
