"""What each GPU is doing, as people see it: kept, so that a change costs what it moves.

The newest pass says which GPUs are over quota. Of the free GPUs of a node the ones with the highest
index are shown as kept for benches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.model import GpuId, JobId
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.inventory import WHOLE, Inventory
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.service.observed.users import Users


class GpuStates:
    """The states of all GPUs. Call ``refresh`` before reading them.

    Attributes:
        states: What each GPU is doing, by UUID; ``counts``: how many do what.
    """

    def __init__(self, ledger: Ledger, observed: Observed) -> None:
        self._ledger = ledger
        self._observed = observed
        self.states: dict[str, GpuState] = {}
        self.counts: Counter[GpuState] = Counter()
        self._inventory: Inventory | None = None
        self._users: Users | None = None
        self._kept: Mapping[str, int] = {}
        self._called: Mapping[str, int] = {}
        self._moved: set[str] = set()
        self._told: Mapping[JobId, frozenset[GpuId]] = {}
        self._over: frozenset[str] = frozenset()
        ledger.gpus_moved.subscribe(self._note)

    def _note(self, gpus: Collection[str]) -> None:
        self._moved.update(gpus)

    def refresh(self) -> Collection[str]:
        """Take over what has changed since the last look; return the nodes looked at again."""
        moved, self._moved = self._moved, set()
        seen = self._observed.now
        inventory, before = seen.inventory, self._inventory
        same = seen.users is self._users and seen.called == self._called
        passed = self._passed_the_border()
        if not moved and inventory is before and same and not passed:
            return ()
        self._users, self._called = seen.users, seen.called
        if before is None or before.configuration is not inventory.configuration:
            self._begin_again()
            moved = set(inventory.by_uuid)
        elif before is not inventory:
            moved |= self._changed_devices(before, inventory)
        self._inventory = inventory
        touched = moved | passed
        nodes = {inventory.by_uuid[gpu].node for gpu in touched if gpu in inventory.by_uuid}
        kept = bench_reserve.by_node(self._ledger, self._observed.now).kept
        nodes.update(n for n in kept.keys() | self._kept.keys() if kept.get(n) != self._kept.get(n))
        self._kept = kept
        for node in nodes:
            self._look_at(node)
        return nodes

    # ------------------------------------------------------------------ inside

    def _begin_again(self) -> None:
        self.states, self.counts = {}, Counter()

    def _changed_devices(self, before: Inventory, now: Inventory) -> set[str]:
        gone = before.by_uuid.keys() - now.by_uuid.keys()
        for gpu in gone:
            self._set(gpu, None)
        known = before.by_uuid
        changed = {
            gpu
            for gpu, device in now.by_uuid.items()
            if (was := known.get(gpu)) is not device and was != device
        }
        return changed | gone

    def _passed_the_border(self) -> set[str]:
        """Return the GPUs that have come over their quota, or back, by the newest pass."""
        told = self._observed.now.latest_pass.over_quota
        if told is self._told:
            return set()
        before, self._told = self._over, told
        self._over = frozenset[str]().union(*told.values())
        return {*(before ^ self._over)}

    def _look_at(self, node: str) -> None:
        inventory = self._observed.now.inventory
        kept = self._kept.get(node, 0)
        for device in reversed(inventory.nodes.get(node, ())):
            state = self._state(device)
            if state is GpuState.FREE and kept > 0 and device.resource == WHOLE:
                kept -= 1
                state = GpuState.BUILD_FREE
            self._set(device.uuid, state)

    def _state(self, device: Device) -> GpuState:
        gpu = device.uuid
        if device.state is DeviceState.BROKEN:
            return GpuState.BROKEN
        if gpu in self._ledger.leased:
            return GpuState.BUILD_HELD
        if gpu in self._ledger.counters.holders:
            over = gpu in self._over
            return GpuState.TRAIN_OVER_QUOTA if over else GpuState.TRAIN_WITHIN_QUOTA
        return GpuState.FOREIGN if device.state is DeviceState.FOREIGN else GpuState.FREE

    def _set(self, gpu: str, state: GpuState | None) -> None:
        before = self.states.pop(gpu, None)
        if before is not None:
            self.counts[before] -= 1
        if state is not None:
            self.states[gpu] = state
            self.counts[state] += 1
