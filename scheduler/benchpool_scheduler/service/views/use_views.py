"""Measured use of GPUs now, as far as callers may see it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from benchpool_scheduler import contract
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger import holders
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views.visibility import Visibility
from benchpool_scheduler.telemetry.live import LatestUse, LiveUse
from benchpool_scheduler.telemetry.samples import Holder


class UseViews:
    """Live use of GPUs. Readers cause no queries to the driver."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, live: LiveUse) -> None:
        self._ledger = ledger
        self._observed = observed
        self._live = live

    def gpus(self, caller: Caller, *, mine: bool = False) -> list[contract.GpuUse]:
        """Return the GPUs by node and index. Holders are named only to callers who may see them.

        Args:
            mine: Only the GPUs that the caller holds.
        """
        return list(self._rows(caller, mine))

    def _rows(self, caller: Caller, mine: bool) -> Iterator[contract.GpuUse]:
        seen = self._observed.now
        latest = self._live.now(self._observed.settings.clock.now())
        sees = Visibility(caller, self._observed).covers
        for devices in seen.inventory.nodes.values():
            for device in devices:
                holder = holders.of_gpu(self._ledger, device.uuid)
                own = holder.user == caller.name and caller.kind == "user"
                if mine and not own:
                    continue
                row = _measured(device, latest.get(device.uuid), holder)
                if holder.user is None:
                    yield row
                elif sees(holder.user, holder.project or ""):
                    yield _named(row, holder, own)
                else:
                    yield row


def _measured(device: Device, latest: LatestUse | None, holder: Holder) -> contract.GpuUse:
    row = contract.GpuUse(
        uuid=device.uuid,
        index=device.index,
        model=device.model,
        node=device.node,
        simulated=device.simulated,
    )
    if latest is None:
        return row
    sample = latest.sample
    idle = latest.idle_since if latest.holder == holder else None
    total = sample.memory_total_gib
    if total is None and device.memory_mib is not None:
        total = device.memory_mib / 1024
    return replace(
        row,
        at=moment(sample.at),
        span_s=round(sample.span_s, 3),
        activity=_rounded(sample.activity, 4),
        sm_activity=_rounded(sample.sm_activity, 4),
        memory_used_gib=_rounded(sample.memory_used_gib, 3),
        memory_total_gib=_rounded(total, 3),
        power_w=_rounded(sample.power_w, 1),
        temperature_c=sample.temperature_c,
        throttled=list(sample.throttled),
        xid=sample.xid,
        parent=sample.parent,
        idle_since=None if idle is None else moment(idle),
    )


def _named(row: contract.GpuUse, holder: Holder, own: bool) -> contract.GpuUse:
    return replace(
        row,
        mine=own,
        user=holder.user,
        project=holder.project,
        job=holder.job,
        worker=holder.worker,
        server=holder.server,
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
