"""States of GPUs for users, updated by events: a change costs only the GPUs that it affects.

The newest pass determines which GPUs are over quota. Of the free GPUs of a node, those with the
highest index are shown as kept for benches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.model import GpuId
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed import closings
from benchpool_scheduler.service.observed.inventory import WHOLE, Inventory
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState


class GpuRow(NamedTuple):
    """A GPU for readers who may see its holder, and for all other readers (``bare``)."""

    gpu: contract.Gpu
    bare: contract.Gpu
    user: str | None
    project: str


class GpuStates:
    """The states of all GPUs. Reading changes nothing; ``moved`` and ``see`` update them.

    Attributes:
        states: State of each GPU, by UUID. ``counts``: number of GPUs by state.
    """

    def __init__(self, ledger: Ledger, observed: SchedulerState) -> None:
        self._ledger = ledger
        self._seen: Observations = observed.now
        self._begin(self._seen)

    def rows(self) -> Iterator[GpuRow]:
        """Yield all GPUs by node, and by index in it."""
        for node in self._seen.inventory.nodes:
            yield from self._rows[node].values()

    # ------------------------------------------------------------------ updates

    def moved(self, gpus: Collection[str]) -> None:
        """Update GPUs whose holder may have changed."""
        leased, known = self._ledger.leased, self._leased
        on_benches = [gpu for gpu in gpus if (gpu in leased) != (gpu in known)]
        if on_benches:
            known.symmetric_difference_update(on_benches)
        self._look_at(gpus, self._others_kept() if on_benches else ())

    def see(self, now: Observations) -> None:
        """Update the GPUs that are affected by new observations."""
        before, self._seen = self._seen, now
        if now.inventory.configuration is not before.inventory.configuration:
            self._begin(now)
            return
        same = now.inventory is before.inventory
        gpus = set() if same else self._changed_devices(before.inventory, now.inventory)
        gpus |= self._passed_the_border(before, now)
        for node in now.closed ^ before.closed:
            gpus |= {device.uuid for device in now.inventory.nodes.get(node, ())}
        same = same and now.users is before.users and now.called == before.called
        same = same and now.closed == before.closed
        self._look_at(gpus, () if same else self._others_kept())

    # ------------------------------------------------------------------ inside

    def _begin(self, seen: Observations) -> None:
        self._seen = seen
        self._leased = set(self._ledger.leased)
        self._over = _over(seen)
        self._kept: Mapping[str, int] = bench_reserve.by_node(self._ledger, seen).kept
        self.states: dict[str, GpuState] = {}
        self.counts: Counter[GpuState] = Counter()
        self._rows: dict[str, dict[str, GpuRow]] = {node: {} for node in seen.inventory.nodes}
        self._look_at(seen.inventory.by_uuid, ())

    def _others_kept(self) -> set[str]:
        """Count the GPUs kept for benches again. Return the nodes where the number has changed."""
        before, self._kept = self._kept, bench_reserve.by_node(self._ledger, self._seen).kept
        now = self._kept
        return {node for node in now.keys() | before.keys() if now.get(node) != before.get(node)}

    def _changed_devices(self, before: Inventory, now: Inventory) -> set[str]:
        """Forget removed GPUs, and the order of nodes with other GPUs. Return the changed GPUs."""
        for gpu in before.by_uuid.keys() - now.by_uuid.keys():
            self._set(gpu, None)
        changed = {
            gpu
            for gpu, device in now.by_uuid.items()
            if (was := before.by_uuid.get(gpu)) is not device and was != device
        }
        rows = self._rows
        self._rows = {node: rows.get(node, {}) for node in now.nodes}
        for node, devices in now.nodes.items():
            uuids = [device.uuid for device in devices]
            if list(self._rows[node]) != uuids:
                self._rows[node] = {}
                changed.update(uuids)
        return changed

    def _passed_the_border(self, before: Observations, now: Observations) -> set[str]:
        """Return the GPUs that the newest pass has moved over or back under their quota."""
        if now.latest_pass.over_quota is before.latest_pass.over_quota:
            return set()
        known, self._over = self._over, _over(now)
        return {*(known ^ self._over)}

    def _look_at(self, gpus: Iterable[str], nodes: Iterable[str]) -> None:
        """Update these GPUs, and the GPUs kept for benches on their nodes and on ``nodes``."""
        by_uuid = self._seen.inventory.by_uuid
        found: dict[str, set[str]] = {node: set() for node in nodes}
        for gpu in gpus:
            if (device := by_uuid.get(gpu)) is not None:
                found.setdefault(device.node, set()).add(gpu)
        for node, moved in found.items():
            self._look_at_node(node, moved)

    def _look_at_node(self, node: str, moved: Collection[str]) -> None:
        """Update the states of a node's GPUs, and the holders of the GPUs in ``moved``."""
        devices = self._seen.inventory.nodes.get(node, ())
        kept, now = self._kept.get(node, 0), dict[str, GpuState]()
        for device in reversed(devices):
            state = self._state(device)
            if state is GpuState.FREE and kept > 0 and device.resource == WHOLE:
                kept -= 1
                state = GpuState.BUILD_FREE
            now[device.uuid] = state
        for device in devices:
            gpu = device.uuid
            if gpu in moved or now[gpu] is not self.states.get(gpu):
                self._set(gpu, now[gpu])
                self._rows[node][gpu] = self._row(device)

    def _state(self, device: Device) -> GpuState:
        gpu = device.uuid
        if device.state is DeviceState.BROKEN:
            return GpuState.BROKEN
        if gpu in self._ledger.leased:
            return GpuState.BUILD_HELD
        if gpu in self._ledger.counters.holders:
            over = gpu in self._over
            return GpuState.TRAIN_OVER_QUOTA if over else GpuState.TRAIN_WITHIN_QUOTA
        if device.state is DeviceState.FOREIGN:
            return GpuState.FOREIGN
        return GpuState.CLOSED if device.node in self._seen.closed else GpuState.FREE

    def _why_closed(self, device: Device) -> str | None:
        """Return why nothing starts on the GPU's node if administrators closed it, else None."""
        node = self._seen.nodes.get(device.node)
        return closings.words(node, closed=True) if device.node in self._seen.closed else None

    def _set(self, gpu: str, state: GpuState | None) -> None:
        before = self.states.pop(gpu, None)
        if before is not None:
            self.counts[before] -= 1
        if state is not None:
            self.states[gpu] = state
            self.counts[state] += 1

    def _row(self, device: Device) -> GpuRow:
        ledger, gpu = self._ledger, device.uuid
        lease = ledger.leased.get(gpu)
        # A bench and a job on one GPU are a breach, which the auditor reports. The bench is shown.
        job = ledger.counters.holders.get(gpu) if lease is None else None
        entry = None if job is None else ledger.counters.entry(job)
        holder = lease or entry
        shown = contract.Gpu(
            uuid=gpu,
            index=device.index,
            model=device.model,
            node=device.node,
            simulated=device.simulated,
            state=self.states[gpu],
            memory_mib=device.memory_mib,
            user=None if holder is None else holder.user,
            job=job,
            server=None if lease is None else lease.server,
            note=device.note or self._why_closed(device),
        )
        bare = shown
        if shown.user is not None:
            bare = msgspec.structs.replace(shown, user=None, job=None, server=None)
        return GpuRow(shown, bare, shown.user, "" if entry is None else entry.project)


def _over(seen: Observations) -> frozenset[GpuId]:
    """Return the GPUs that are over quota according to the newest pass."""
    return frozenset[GpuId]().union(*seen.latest_pass.over_quota.values())
