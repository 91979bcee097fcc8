"""Leader election by a Lease object: the I/O around ``election``.

election = Election(connection_of_its_own, namespace, "benchpool-scheduler", identity)
epoch = await election.win()           # returns when this process leads
others.guard = election.guard          # writes raise NotLeading in other processes
keeping = asyncio.create_task(election.keep())  # raises NotLeading when the term is over
...
await election.resign()                # after the last write: the next leader need not wait
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.kube.connection import Connection
from benchpool_scheduler.kube.election import (
    ElectionState,
    ElectionTiming,
    Record,
    TermOver,
    Wait,
    Write,
    may_write,
    observe,
    step,
    written,
)
from benchpool_scheduler.kube.failures import (
    KubeAlreadyExists,
    KubeConflict,
    KubeNotFound,
    KubeUnavailable,
)
from benchpool_scheduler.kube.kinds import LEASES
from benchpool_scheduler.kube.retry import ONCE

log = logging.getLogger(__name__)

ADDRESS = "benchpool.io/leader-address"
"""Annotation of the lease with the address of the leader."""


class NotLeading(Unavailable):
    """This process does not lead, or no longer: it writes nothing, and ends or stands by."""

    default_code = "not-leading"


def clock() -> float:
    """Return seconds of a clock that cannot be set, and that continues while the machine sleeps."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


class _Metadata(Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_transitions: int | None = None
    renew_time: str | None = None


class _Lease(Struct, frozen=True):
    metadata: _Metadata
    spec: _Spec = _Spec()


class Election:
    """Participation of one process in the election.

    Args:
        connection: A separate connection, so that no other request delays a renewal and no guard
            blocks it.
        identity: Unique identity of this process, e.g. the pod's name and a random word.
        address: Address of this process for others when it leads.
    """

    def __init__(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        identity: str,
        *,
        address: str = "",
        timing: ElectionTiming = ElectionTiming(),  # noqa: B008 (frozen)
    ) -> None:
        self._connection = connection
        self._namespace = namespace
        self._name = name
        self._address = address
        self._timing = timing
        self._state = ElectionState(identity)

    @property
    def epoch(self) -> int:
        """Epoch of this process's term; 0 before it."""
        return self._state.epoch

    @property
    def leads(self) -> bool:
        """Whether it leads at this moment."""
        return may_write(self._state, clock())

    @property
    def leader(self) -> Record | None:
        """The lease as last seen, with the leader and its address."""
        return self._state.record

    def guard(self) -> None:
        """Do nothing if this process leads. Raises NotLeading otherwise."""
        if not self.leads:
            who = self._state.record
            raise NotLeading(
                "This replica of the scheduler does not lead"
                + (f"; {who.holder} does." if who is not None and who.holder else ".")
            )

    async def win(self) -> int:
        """Stand by until this process leads; return its epoch."""
        while True:
            await self._look()
            match step(self._state, clock(), self._timing):
                case Write() as write:
                    await self._write(write)
                    if self.leads:
                        log.info("leading, epoch %d", self.epoch)
                        return self.epoch
                    await asyncio.sleep(self._jittered(self._timing.retry_s))
                case Wait(seconds=seconds):
                    await asyncio.sleep(max(0.05, min(seconds, self._jittered(seconds))))
                case TermOver():
                    raise NotLeading("The term of this process is over. It must restart.")

    async def keep(self) -> None:
        """Renew the lease until that fails. Always ends with NotLeading."""
        while self.leads:
            # The timeout reports the end of the term on time even if calls are slow.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((self._state.until or 0.0) - clock()):
                    await asyncio.sleep(self._jittered(self._timing.retry_s))
                    match step(self._state, clock(), self._timing):
                        case Write() as write:
                            await self._write(write)
                        case _:
                            break
        self._state = observe(self._state, None, clock())
        raise NotLeading(
            f"The lease {self._name} could not be renewed within {self._timing.renew_s:g} s or "
            "belongs to another replica now. This process exits and another one leads."
        )

    async def resign(self) -> None:
        """Release the lease, after the last write; if that fails, the lease expires."""
        state = self._state
        if not self.leads or state.record is None:
            return
        self._state = observe(state, None, clock())
        with contextlib.suppress(KubeUnavailable, KubeConflict, KubeNotFound, TimeoutError):
            async with asyncio.timeout(self._timing.retry_s):
                await self._put(state.record.version, state.epoch, holder="")

    # ------------------------------------------------------------------ inside

    def _jittered(self, seconds: float) -> float:
        return seconds * random.uniform(0.8, 1.2)  # noqa: S311

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(self._timing.retry_s * 2):
                found: _Lease = await self._connection.get(
                    LEASES, self._name, namespace=self._namespace, as_=_Lease
                )
        except KubeNotFound:
            self._state = observe(self._state, None, clock())
        except (KubeUnavailable, TimeoutError) as away:
            log.warning("the lease cannot be read: %s", away)
            await asyncio.sleep(self._jittered(self._timing.retry_s))
        else:
            self._state = observe(self._state, _record(found), clock())

    async def _write(self, write: Write) -> None:
        sent = clock()
        limit_s = self._timing.retry_s * 2
        if self._state.until is not None:
            limit_s = min(limit_s, max(0.1, self._state.until - sent))
        try:
            async with asyncio.timeout(limit_s):
                found = await self._put(write.version, write.transitions, self._state.me)
        except (KubeConflict, KubeAlreadyExists, KubeNotFound):
            await self._look()
        except (KubeUnavailable, TimeoutError) as away:
            log.warning("the lease cannot be written: %s", away)
            await self._look_after_loss()
        else:
            self._state = written(self._state, _record(found), sent, clock(), self._timing)

    async def _look_after_loss(self) -> None:
        """Read the lease after a lost write, since the next write needs its version."""
        if self._state.until is None or self.leads:
            await self._look()

    async def _put(self, version: str | None, transitions: int, holder: str) -> _Lease:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # informational
        metadata: dict[str, Any] = {
            "name": self._name,
            "annotations": {ADDRESS: self._address if holder else ""},
        }
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": metadata,
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": max(1, round(self._timing.duration_s)),
                "renewTime": now,
                "leaseTransitions": transitions,
            },
        }
        if version is None:
            made: _Lease = await self._connection.create(
                LEASES, body, namespace=self._namespace, as_=_Lease, patience=ONCE
            )
            return made
        metadata["resourceVersion"] = version
        put: _Lease = await self._connection.replace(
            *(LEASES, self._name, body), namespace=self._namespace, as_=_Lease, patience=ONCE
        )
        return put


def _record(lease: _Lease) -> Record:
    return Record(
        holder=lease.spec.holder_identity or "",
        transitions=lease.spec.lease_transitions or 0,
        mark=lease.spec.renew_time or "",
        version=lease.metadata.resource_version,
        address=(lease.metadata.annotations or {}).get(ADDRESS, ""),
    )
