"""What was measured of GPUs and of workers, and who held them: frozen, one object for one span.

A value is None where it was not measured; nothing is made up for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.worker.worker_id import WorkerId


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU over one span of time.

    Attributes:
        at: End of the span, seconds since the epoch by the service's clock. ``span_s``: its length.
        gpu: The GPU as the rest of the scheduler names it: a UUID, or a node's slot.
        activity: Share of the span in which a kernel ran, 0 to 1. It says nothing of how much of
            the GPU that kernel used; ``sm_activity`` does: the share of the multiprocessors at
            work, a mean over the span.
        memory_used_gib: In use by programs, at the end; ``memory_total_gib``: what there is.
        power_w: At the end. ``energy_j``: taken in during the span.
        temperature_c: Of the chip, at the end.
        throttled: Why it ran slower than it could, words of ``nvml.THROTTLING``; empty for not.
        xid: Number of a driver's error that came during the span, the newest.
        simulated: The GPU exists in the books alone, and so does what is said of it.
        of: Who had it by what measured it: a worker, or the id of a bench's lease; None where only
            the service's books say it.
        parent: The uuid of the GPU that it is a slice of; None for a whole one, and where that is
            not known. Power and energy are told of whole GPUs alone.

    >>> GpuSample(at=110.0, span_s=10.0, gpu="GPU-a", activity=0.25).active_s
    2.5
    """

    at: float
    span_s: float
    gpu: str
    activity: float | None = None
    sm_activity: float | None = None
    memory_used_gib: float | None = None
    memory_total_gib: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    temperature_c: float | None = None
    throttled: tuple[str, ...] = ()
    xid: int | None = None
    simulated: bool = False
    of: WorkerId | str | None = None
    parent: str | None = None

    @property
    def active_s(self) -> float | None:
        """Seconds of the span in which a kernel ran."""
        return None if self.activity is None else self.activity * self.span_s


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """The processes of one worker, or of one bench, over one span of time.

    Attributes:
        of: The worker, or the id of the bench's lease.
        at: End of the span, seconds since the epoch. ``span_s``: its length.
        cpu_s: Processor seconds used in the span. ``cpus``: cores that it was given, 0 for no
            bound.
        first_cpu_s: What the first of its processes used of that itself: a notebook server that
            serves pages, what watches over a worker. 0 where that is not known.
        memory_gib: In use at the end. ``memory_peak_gib``: the most since the start, as far as
            was seen.
        read_bytes: From disks in the span, ``written_bytes`` to them.
    """

    of: WorkerId | str
    at: float
    span_s: float
    cpu_s: float
    cpus: float = 0.0
    memory_gib: float | None = None
    memory_peak_gib: float | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    first_cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who held a GPU by the service's books: a worker of a job, a bench, or nobody.

    Attributes:
        job: With ``attempt``, ``worker`` and ``project``, where a job held it.
        bench: Id of the lease, with ``server`` (the user's notebook server, empty for the default
            one), where a bench held it.
    """

    job: str | None = None
    attempt: int | None = None
    worker: int | None = None
    bench: str | None = None
    server: str | None = None
    user: str | None = None
    project: str | None = None


NOBODY = Holder()


@dataclass(frozen=True, slots=True)
class HeldSample:
    """A sample of a GPU, with who held it at the end of the span."""

    sample: GpuSample
    holder: Holder = NOBODY


@dataclass(frozen=True, slots=True)
class HeldWorkerSample:
    """A sample of a worker or of a bench, with who that is."""

    sample: WorkerSample
    holder: Holder
