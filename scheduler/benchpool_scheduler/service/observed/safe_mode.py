"""What the service knows that it does not know: jobs without a record, records without a meaning.

Whatever they hold is given to nobody else (R1); all other work goes on. Only where it cannot be
told what is missing does nothing new begin: ``hold``.
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
    """A job that runs, and of which the database knows nothing, or not this attempt.

    Attributes:
        gpus: What its workers hold; None where that cannot be told.
        since: When the first of them started. ``in_line``: the database has it as a job that waits.
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
    """One instant's.

    Attributes:
        lost: Why nothing new may begin, as the store tells it.
        hub: What the Hub's own database lost: servers that it does not name may run all the same.
    """

    lost: str | None = None
    unknown: tuple[UnknownJob, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    hub: str | None = None

    @property
    def hold(self) -> str | None:
        """Why nothing new may begin; None where it may."""
        if self.lost is not None:
            return self.lost
        for job in self.unknown:
            if job.gpus is None:
                return (
                    f"Job {job.id} runs, the database does not know it, and which GPUs it holds "
                    "cannot be told: nothing new is started until an administrator takes it in "
                    f"(`benchpool adopt {job.id}`) or ends it (`benchpool adopt {job.id} --end`)."
                )
        return None

    @property
    def held_because(self) -> str | None:
        """The same in a few words, for those who cannot decide about it."""
        if self.lost is not None:
            return "the pool's database was lost or damaged"
        if self.hold is not None:
            return "a job runs that the pool's database does not know, and its GPUs cannot be told"
        return None

    @property
    def quiet(self) -> bool:
        """Whether all is known."""
        return not (self.lost or self.unknown or self.unreadable or self.hub)

    @cached_property
    def held_jobs(self) -> Mapping[str, int]:
        """Jobs of the database that must not be started: they run already, in that attempt."""
        return {job.id: job.attempt for job in self.unknown}

    @cached_property
    def blocked(self) -> Mapping[str, str]:
        """GPUs that nobody may be given, each with the reason."""
        found: dict[str, str] = {}
        for job in self.unknown:
            note = f"held by job {job.id[:8]}, which the database does not know"
            found.update(dict.fromkeys(job.gpus or (), note))
        for it in self.unreadable:
            note = f"held by {it.kind} {it.id[:8]}, whose record cannot be read"
            found.update(dict.fromkeys(it.gpus, note))
        return found

    def without_blocked(self, devices: tuple[Device, ...]) -> tuple[Device, ...]:
        """Return the GPUs with those that nobody may be given marked as used by others."""
        if not self.blocked:
            return devices
        return tuple(
            _with_note(device, self.blocked[device.uuid]) if device.uuid in self.blocked else device
            for device in devices
        )

    def require_open(self) -> None:
        """Refuse what is new while nothing may begin. Errors: Unavailable ``safe-mode``."""
        if self.held_because is not None:
            raise Unavailable(
                f"benchpool accepts nothing new at the moment, because {self.held_because}; "
                "running jobs go on. An administrator finds what to do with `benchpool status`.",
                code=SAFE_MODE,
            )


def _with_note(device: Device, note: str) -> Device:
    """Return a GPU that is not ours to give, with the reason."""
    return replace(device, state=DeviceState.FOREIGN, note=note)
