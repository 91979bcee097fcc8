"""What each GPU is doing, as people see it: kept from look to look, a change costs what it moves.

Of a project's GPUs those above its quota are shown as over quota: the ones that its newest jobs
hold. Of the free GPUs of a node the ones with the highest index are shown as kept for benches.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping

from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.inventory import WHOLE, Inventory
from benchpool_scheduler.service.observed.site import Site
from benchpool_scheduler.service.observed.users import Users

Held = tuple[float, str]
"""When the job that holds a GPU was submitted, and the GPU: a project's GPUs in this order."""


class GpuStates:
    """The states of all GPUs. Call ``refresh`` before a look.

    Attributes:
        states: What each GPU is doing, by UUID; ``counts``: how many do what.
        seen_anew: Nodes that were looked at again since somebody last cleared this.
    """

    def __init__(self, ledger: Ledger, site: Site) -> None:
        self._ledger = ledger
        self._site = site
        self.states: dict[str, GpuState] = {}
        self.counts: Counter[GpuState] = Counter()
        self.seen_anew: set[str] = set()
        self._inventory: Inventory | None = None
        self._users: Users | None = None
        self._kept: Mapping[str, int] = {}
        self._called: Mapping[str, int] = {}
        self._held: dict[str, list[Held]] = {}
        self._place: dict[str, tuple[str, Held]] = {}

    def refresh(self) -> None:
        """Take over what has changed since the last look."""
        moved, self._ledger.counters.moved = self._ledger.counters.moved, set()
        inventory, before = self._site.inventory, self._inventory
        users = self._site.users
        called = self._site.called
        same = users is self._users and called == self._called
        if not moved and inventory is before and same:
            return
        self._users, self._called = users, called
        if before is None or before.configuration is not inventory.configuration:
            self._begin_again()
            moved = set(inventory.by_uuid)
        elif before is not inventory:
            moved |= self._changed_devices(before, inventory)
        self._inventory = inventory
        touched = set(moved)
        for gpu in moved:
            touched.update(self._rank(gpu))
        nodes = {inventory.by_uuid[gpu].node for gpu in touched if gpu in inventory.by_uuid}
        kept = bench_reserve.kept_by_node(self._ledger, self._site)
        nodes.update(n for n in kept.keys() | self._kept.keys() if kept.get(n) != self._kept.get(n))
        self._kept = kept
        for node in nodes:
            self._look_at(node)
        self.seen_anew |= nodes

    # ------------------------------------------------------------------ inside

    def _begin_again(self) -> None:
        self.states, self.counts = {}, Counter()
        self._held, self._place = {}, {}

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

    def _rank(self, gpu: str) -> Iterator[str]:
        """Put a GPU to its project's in order; yield what passes the quota's border by that."""
        place = self._place_of(gpu)
        before = self._place.get(gpu)
        if before == place:
            return
        if before is not None:
            project, held = before
            order = self._held[project]
            position = bisect_left(order, held)
            del order[position]
            yield from self._at_border(project, position, -1)
            del self._place[gpu]
        if place is not None:
            project, held = place
            order = self._held.setdefault(project, [])
            position = bisect_left(order, held)
            insort(order, held)
            self._place[gpu] = place
            yield from self._at_border(project, position, 0)

    def _place_of(self, gpu: str) -> tuple[str, Held] | None:
        job = self._ledger.counters.holders.get(gpu)
        entry = None if job is None else self._ledger.counters.entry(job)
        return None if entry is None else (entry.project, (entry.submitted, gpu))

    def _at_border(self, project: str, position: int, step: int) -> Iterator[str]:
        quota, order = self._quota(project), self._held[project]
        if quota is not None and position <= quota + step < len(order) and quota + step >= 0:
            yield order[quota + step][1]

    def _quota(self, project: str) -> int | None:
        settings = self._site.configuration.project(project)
        return 0 if settings is None else settings.project.quota

    def _is_over(self, gpu: str) -> bool:
        project, held = self._place[gpu]
        quota = self._quota(project)
        order = self._held[project]
        return quota is not None and len(order) > quota and held >= order[quota]

    def _look_at(self, node: str) -> None:
        inventory = self._site.inventory
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
            over = self._is_over(gpu)
            return GpuState.TRAIN_OVER_QUOTA if over else GpuState.TRAIN_WITHIN_QUOTA
        return GpuState.FOREIGN if device.state is DeviceState.FOREIGN else GpuState.FREE

    def _set(self, gpu: str, state: GpuState | None) -> None:
        before = self.states.pop(gpu, None)
        if before is not None:
            self.counts[before] -= 1
        if state is not None:
            self.states[gpu] = state
            self.counts[state] += 1
