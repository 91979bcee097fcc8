"""Measured samples of GPUs and workers with their holders: frozen, one object per span.

A value that was not measured is None, never an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchpool_scheduler.worker.worker_id import WorkerId


@dataclass(frozen=True, slots=True)
class GpuSample:
    """Measurements of one GPU over one span of time.

    Attributes:
        at: End of the span, seconds since the epoch by the service's clock. ``span_s``: its length.
        gpu: The GPU as named by the rest of the scheduler: a UUID, or a node's slot.
        activity: Share of the span in which a kernel ran, 0 to 1, regardless of how much of the
            GPU that kernel used. ``sm_activity``: mean share of the multiprocessors in use.
        memory_used_gib: In use by programs, at the end; ``memory_total_gib``: total memory.
        power_w: At the end. ``energy_j``: used during the span.
        temperature_c: Of the chip, at the end.
        throttled: Reasons for a reduced clock, words of ``nvml.THROTTLING``; empty for none.
        xid: Number of the newest driver error in the span.
        simulated: Whether GPU and values are simulated.
        of: Its holder according to the sampler: a worker, or the ID of a bench's lease; None where
            only the service's ledger has it.
        parent: The uuid of the GPU that it is a slice of; None for a whole GPU, or if unknown.
            Power and energy are measured for whole GPUs only.

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
        """Return the seconds of the span in which a kernel ran."""
        return None if self.activity is None else self.activity * self.span_s


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """Measurements of the processes of one worker or bench over one span of time.

    Attributes:
        of: The worker, or the ID of the bench's lease.
        at: End of the span, seconds since the epoch. ``span_s``: its length.
        cpu_s: Processor seconds used in the span. ``cpus``: assigned cores, 0 for no limit.
        first_cpu_s: Part of it used by the first process itself: the page server of a notebook
            server, or the supervisor of a worker. 0 if unknown.
        memory_gib: In use at the end. ``memory_peak_gib``: the largest seen since the start.
        read_bytes: Read from disks in the span; ``written_bytes``: written to them.
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
    """Holder of a GPU in the service's ledger: a worker of a job, a bench, or none.

    Attributes:
        job: With ``attempt``, ``worker`` and ``project``, if a job held it.
        bench: ID of the lease, with ``server`` (the user's notebook server, empty for the default
            one), if a bench held it.
    """

    job: str | None = None
    attempt: int | None = None
    worker: int | None = None
    bench: str | None = None
    server: str | None = None
    user: str | None = None
    project: str | None = None


NO_HOLDER = Holder()


@dataclass(frozen=True, slots=True)
class HeldSample:
    """Sample of a GPU, with its holder at the end of the span."""

    sample: GpuSample
    holder: Holder = NO_HOLDER


@dataclass(frozen=True, slots=True)
class HeldWorkerSample:
    """Sample of a worker or bench, with its holder record."""

    sample: WorkerSample
    holder: Holder
