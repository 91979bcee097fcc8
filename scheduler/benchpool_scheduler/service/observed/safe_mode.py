"""Safe mode: jobs that run without a record, and records that cannot be read.

Their GPUs are not allocated (R1), and all other work continues. No job starts only if the missing
part is unknown: ``hold``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from benchpool_scheduler.contract.errors import SAFE_MODE
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.runtime import Device, DeviceState, WorkerId
from benchpool_scheduler.store.records import Unreadable


@dataclass(frozen=True, slots=True)
class UnknownJob:
    """A running job without a database record, or whose record lacks this attempt.

    Attributes:
        gpus: GPUs that its workers hold, or None if they cannot be determined.
        since: When the first of them started. ``in_line``: the database has the job as queued.
    """

    id: str
    attempt: int
    workers: tuple[WorkerId, ...]
    gpus: tuple[str, ...] | None
    name: str = ""
    project: str = ""
    user: str = ""
    since: float | None = None
    in_line: bool = False


@dataclass(frozen=True)
class SafeMode:
    """The safe-mode issues at one instant.

    Attributes:
        lost: Why no job may start, as the store reports it.
        hub: Losses of the Hub's own database: servers that it does not name may still run.
    """

    lost: str | None = None
    unknown: tuple[UnknownJob, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    hub: str | None = None

    @property
    def hold(self) -> str | None:
        """Why no job may start, or None."""
        if self.lost is not None:
            return self.lost
        for job in self.unknown:
            if job.gpus is None:
                return (
                    f"Job {job.id} runs, the database does not know it, and its GPUs are "
                    "unknown: no new job starts until an administrator adopts it "
                    f"(`benchpool adopt {job.id}`) or ends it (`benchpool adopt {job.id} --end`)."
                )
        return None

    @property
    def held_because(self) -> str | None:
        """The same in a few words, for readers who cannot decide about it."""
        if self.lost is not None:
            return "the pool's database was lost or damaged"
        if self.hold is not None:
            return "a job runs that the pool's database does not know, and its GPUs are unknown"
        return None

    @property
    def quiet(self) -> bool:
        """Whether there are no issues."""
        return not (self.lost or self.unknown or self.unreadable or self.hub)

    @cached_property
    def held_jobs(self) -> Mapping[str, int]:
        """Jobs of the database that must not be started, since they run already in this attempt."""
        return {job.id: job.attempt for job in self.unknown}

    @cached_property
    def blocked(self) -> Mapping[str, str]:
        """GPUs that must not be allocated, each with the reason."""
        found: dict[str, str] = {}
        for job in self.unknown:
            note = f"held by job {job.id[:8]}, which the database does not know"
            found.update(dict.fromkeys(job.gpus or (), note))
        for it in self.unreadable:
            note = f"held by {it.kind} {it.id[:8]}, whose record cannot be read"
            found.update(dict.fromkeys(it.gpus, note))
        return found

    def without_blocked(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        """Return the GPUs, with blocked ones marked as used by others."""
        if not self.blocked:
            return devices
        return tuple(
            _with_note(device, self.blocked[device.uuid]) if device.uuid in self.blocked else device
            for device in devices
        )

    def require_open(self) -> None:
        """Refuse new work while no job may start. Errors: Unavailable ``safe-mode``."""
        if self.held_because is not None:
            raise Unavailable(
                f"benchpool accepts no new work now, because {self.held_because}; "
                "running jobs go on. `benchpool status` shows administrators what to do.",
                code=SAFE_MODE,
            )


def _with_note(device: Device, note: str) -> Device:
    """Return a GPU marked as foreign, with the reason."""
    return replace(device, state=DeviceState.FOREIGN, note=note)
