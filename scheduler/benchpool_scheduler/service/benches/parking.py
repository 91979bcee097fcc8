"""Benches whose GPU is lent while their kernel's GPU memory is kept in the node's memory.

A parked bench holds no GPU: its lease is released, and written again when the kernel returns. A
file keeps the records. After a restart the driver reports the progress of each bench.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import msgspec
from msgspec import Struct

from benchpool_scheduler import contract
from benchpool_scheduler.core.benches.parking import (
    LENDS,
    MAKES_IMAGE,
    ParkEvent,
    ParkState,
    next_state,
)
from benchpool_scheduler.core.benches.parking_gates import image_size
from benchpool_scheduler.errors import BenchpoolError, NotFound, Refused, Unavailable
from benchpool_scheduler.runtime.parker import Parkable
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.benches import parked_words
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observations import ParkedGpu
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.store import whole_files
from benchpool_scheduler.store.records import LeaseRecord, SaveLease

LOOK_S = 2.0
"""Interval between two looks at a kernel that waits or is parked, in seconds."""

_PROBLEM = "parking"
_OVER = frozenset({ParkState.RUNNING, ParkState.ENDED})


class ParkedRecord(Struct, frozen=True):
    """Record of a bench that is parked or being parked or restored.

    Attributes:
        lease: Its lease before and after parking. ``asked``: time of the request to park it.
        wanted: It is to return. ``gone``: its kernel has ended, and its server gets the GPU again.
    """

    lease: LeaseRecord
    kernel: Parkable
    state: ParkState
    asked: float
    wanted: bool = False
    gone: bool = False


class BenchParking:
    """Parks benches and restores them; does nothing without a ``Parker``.

    Args:
        give_back: Releases a lease. ``want_pass``: requests a pass.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        give_back: Callable[[str], Awaitable[None]],
        want_pass: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._give_back = give_back
        self._want_pass = want_pass
        self._parker = observed.settings.parker
        self._file = observed.settings.state / "scheduler" / "parked-benches.json"
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()
        self._kept: dict[str, ParkedRecord] = {}
        if self._parker is not None:
            with contextlib.suppress(OSError, msgspec.DecodeError):
                found = msgspec.json.decode(self._file.read_bytes(), type=list[ParkedRecord])
                self._kept = {it.lease.id: it for it in found}
            self._publish()

    # ------------------------------------------------------------------ actions

    async def park(self, caller: Caller, lease: str) -> contract.ParkedBench:
        """Begin to park a bench; repeating it does nothing.

        Errors: NotFound, Refused ``parking-off`` or ``not-parkable``, Unavailable.
        """
        if (known := self._kept.get(lease)) is not None:
            return self._seen(caller, known)
        held = self._ledger.lease(lease)
        if held is None or not rights.may_use_lease(caller, held):
            raise _no_bench()
        self._require_on()
        if self._parker is None:
            raise Refused(parked_words.OFF, code="parking-off")
        making = (it for it in self._kept.values() if it.state in MAKES_IMAGE)
        look = await self._parker.look(held.gpus, sum(image_size(it.kernel.used) for it in making))
        if look.one is None:
            raise Refused(parked_words.not_parkable(look.closed), code="not-parkable")
        if self._ledger.lease(lease) is None or lease in self._kept:
            raise Unavailable("The bench changed meanwhile. Check it, and try again.")
        asked = self._observed.settings.clock.now()
        record = ParkedRecord(held, look.one, ParkState.LOCKING, asked)
        try:
            await self._change(record)
        except OSError as error:
            raise Unavailable(f"It cannot be saved ({error.strerror}). Try again.") from error
        return self._view(record, caller)

    async def unpark(self, caller: Caller, lease: str) -> contract.ParkedBench:
        """Begin to restore a bench; repeating it does nothing. Errors: NotFound, Unavailable."""
        record = self._kept.get(lease)
        if record is None or not rights.may_use_lease(caller, record.lease):
            raise _no_bench()
        try:
            await self._change(record, wanted=True)
        except OSError as error:
            raise Unavailable(f"It cannot be saved ({error.strerror}). Try again.") from error
        return self._view(self._kept.get(lease, record), caller)

    async def forget(self, lease: str) -> None:
        """Forget a bench whose server ends, since its kernel ends too."""
        record = self._kept.get(lease)
        if record is not None:
            await self._moved(record, ParkState.ENDED, server_ends=True)

    def benches(self, caller: Caller) -> list[contract.ParkedBench]:
        """Return the parked benches that the caller may see. Errors: Refused ``parking-off``."""
        if not self._kept:
            self._require_on()
        return self.seen_by(caller)

    def seen_by(self, caller: Caller) -> list[contract.ParkedBench]:
        """Return the same as ``benches`` without an error where parking is off."""
        found = (it for it in self._kept.values() if rights.may_use_lease(caller, it.lease))
        return [self._view(it, caller) for it in found]

    @property
    def wanted(self) -> bool:
        """Whether this site parks benches."""
        build = self._observed.now.configuration.build
        return self._parker is not None and build.parking and build.lend_idle

    def knows(self, lease: str) -> bool:
        """Return whether a bench is parked, or being parked or restored."""
        return lease in self._kept

    def leases(self) -> list[LeaseRecord]:
        """Return the leases of parked benches, as they will be after their return."""
        return [it.lease for it in self._kept.values()]

    def know_lease(self, lease: LeaseRecord) -> None:
        """Replace the lease of a parked bench whose user was renamed."""
        record = self._kept.get(lease.id)
        if record is not None:
            self._put(msgspec.structs.replace(record, lease=lease))

    def is_lent(self, lease: str) -> bool:
        """Return whether a bench is parked and its GPU lent."""
        record = self._kept.get(lease)
        return record is not None and record.state in LENDS

    def _require_on(self) -> None:
        build = self._observed.now.configuration.build
        if self._parker is None or not build.parking:
            raise Refused(parked_words.OFF, code="parking-off")
        if not build.lend_idle:
            raise Refused(parked_words.NOT_LENT, code="parking-off")

    def _seen(self, caller: Caller, record: ParkedRecord) -> contract.ParkedBench:
        if not rights.may_use_lease(caller, record.lease):
            raise _no_bench()
        return self._view(record, caller)

    def _view(self, record: ParkedRecord, caller: Caller) -> contract.ParkedBench:
        lease = record.lease
        step = parked_words.STEPS[record.state]
        if step is contract.ParkStep.PARKED and record.wanted:
            step = contract.ParkStep.RETURNING
        holder = self._ledger.job(self._ledger.counters.holders.get(lease.gpus[0], ""))
        grace_s = self._observed.now.configuration.policy.grace_s
        return contract.ParkedBench(
            lease=lease.id,
            user=lease.user,
            server=lease.server,
            gpus=list(lease.gpus),
            step=step,
            since=moment(record.asked),
            bytes=record.kernel.used,
            text=parked_words.how_it_stands(
                record.state,
                whose="Your" if caller.name == lease.user else "Its",
                wanted=record.wanted,
                borrowed=holder is not None,
                pausable=holder is not None and holder.spec.preemptible,
                grace_s=grace_s,
            ),
        )

    # ------------------------------------------------------------------ background task

    async def take_back(self) -> None:
        """Reserve the free GPUs of returning benches. The caller holds the ledger's lock."""
        for record in list(self._kept.values()):
            gpu = record.lease.gpus[0]
            held = gpu in self._ledger.counters.holders or gpu in self._ledger.leased
            if record.state is not ParkState.ASKING or held:
                continue
            if record.gone and not self._server_is_there(record):
                continue  # its server has stopped: the next step ends the bench
            lease = msgspec.structs.replace(record.lease, since=self._observed.settings.clock.now())
            await self._ledger.commit(SaveLease(lease))
            # If the kernel has ended, its server has its GPU again and nothing remains to do.
            done = ParkState.ENDED if record.gone else next_state(record.state, ParkEvent.DONE)
            self._put(msgspec.structs.replace(record, state=done))

    async def run(self) -> None:
        """Move every bench through its steps until cancelled.

        First the driver is asked about the steps that a restart cut off.
        """
        if self._parker is None:
            return
        try:
            for record in list(self._kept.values()):
                lease = self._ledger.leased.get(record.lease.gpus[0])
                holds = lease is not None and lease.id == record.lease.id
                found = await self._parker.found(record.kernel, holds_gpu=holds)
                await self._moved(self._kept[record.lease.id], found)
            while True:
                self._news.clear()
                moved = [await self._turn(id_) for id_ in list(self._kept)]
                if not any(moved):
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S if self._kept else None):
                            await self._news.wait()
        finally:
            await self._parker.close()

    async def _turn(self, id_: str) -> bool:
        """Take one step with a bench. Return whether its state changed."""
        record = self._kept.get(id_)
        if record is None or self._parker is None:
            return False
        if record.gone:
            if self._server_is_there(record):
                return False
            await self._moved(record, ParkState.ENDED, server_ends=True)
            return True
        if record.state is ParkState.PARKED and record.wanted:
            await self._moved(record, next_state(record.state, ParkEvent.BACK))
            return True
        after = await self._parker.step(record.state, record.kernel)
        now = self._kept.get(id_)
        if now is None or now.state is not record.state or after is record.state:
            return False
        await self._moved(now, after)
        return id_ not in self._kept or self._kept[id_].state is after

    def _server_is_there(self, record: ParkedRecord) -> bool:
        servers = self._observed.settings.directory.servers()
        at = (record.lease.user, record.lease.server)
        return servers is None or any((it.user, it.name) == at for it in servers)

    async def _moved(
        self, record: ParkedRecord, state: ParkState, *, server_ends: bool = False
    ) -> None:
        fields: dict[str, Any] = {"state": state}
        if state in (ParkState.LOST, ParkState.ENDED) and record.state in LENDS and not server_ends:
            # The server keeps running, and its next kernel must find the GPU in its place.
            fields = {"state": ParkState.ASKING, "wanted": True, "gone": True}
        if state is ParkState.PARKED and self._ledger.lease(record.lease.id) is not None:
            try:
                await self._give_back(record.lease.id)
            except BenchpoolError as error:
                self._observed.report(_PROBLEM, str(error))
                return  # retried later: NVML still shows nothing of the kernel
        try:
            await self._change(record, **fields)
        except OSError as error:
            # The driver has the progress, and the previous file suffices to query it.
            self._put(msgspec.structs.replace(record, **fields))
            self._observed.report(_PROBLEM, parked_words.unwritten(error.strerror or str(error)))
        if state is ParkState.LOST:
            self._observed.report(_PROBLEM, parked_words.lost(record.lease.user, record.lease.gpus))
        self._want_pass()

    async def _change(self, record: ParkedRecord, **fields: Any) -> None:
        """Change fields of the current record and write all records.

        The loop and callers change different fields, possibly while the other's change is written.
        Errors: OSError, without changes.
        """
        id_ = record.lease.id
        async with self._writing:
            changed = msgspec.structs.replace(self._kept.get(id_, record), **fields)
            now = {**self._kept, id_: changed}
            if changed.state in _OVER:
                del now[id_]
            text = msgspec.json.encode(list(now.values()))
            await asyncio.to_thread(whole_files.write, self._file, text)
            self._put(msgspec.structs.replace(self._kept.get(id_, record), **fields))

    def _put(self, record: ParkedRecord) -> None:
        if record.state in _OVER:
            self._kept.pop(record.lease.id, None)
        else:
            self._kept[record.lease.id] = record
        self._publish()
        self._news.set()
        self._want_pass()

    def _publish(self) -> None:
        parked = {
            it.lease.gpus[0]: ParkedGpu(it.lease.id, it.lease.user, it.state is ParkState.ASKING)
            for it in self._kept.values()
            if it.state in LENDS or it.state is ParkState.VACATING
        }
        if parked != self._observed.now.parked:
            self._observed.put(replace(self._observed.now, parked=parked))


def _no_bench() -> NotFound:
    return NotFound("There is no such bench that you may see. `benchpool parked` lists them.")
