"""GPU usage of an ended job: the measurements that are kept, and the note based on them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]


class JobMeasurements(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Measurements of a job until its end. Values that were not measured are null or 0.

    Attributes:
        held_s: GPU seconds that its workers held in all attempts.
        covered_s: Measured part of ``held_s``.
        active_s: Part of ``covered_s`` in which a kernel ran.
        samples: Number of samples of one GPU, on average.
        sm_covered_s, sm_active_s: The same for the multiprocessors.
        energy_j: Energy, in joules.
        throttled_s: GPU seconds below full speed.
        xids: Number of driver errors.
        lost_s: GPU seconds of work lost by pauses.
        gpu_memory_gib: Peak memory in use on one GPU.
        gpu_memory_total_gib: Memory size of a GPU.
        gpus: GPUs of the last attempt.
        busy_gpus: GPUs that ran a kernel for over 1 % of the time.
        busy_workers: Workers with such a GPU.
        busy_gpus_of_worker: Maximum number of such GPUs of one worker.
        least_activity, most_activity: Activity of the least and the most active of these GPUs.
        ran_s: Length of the last attempt.
        before_s: Part of ``ran_s`` before the first kernel.
        after_s: Part of ``ran_s`` after the last kernel.
        between_s: Part of ``ran_s`` between them without any kernel.
        nodes: Machines of the last attempt.
        worker_s: Seconds of all workers.
        worker_covered_s: Measured part of ``worker_s``.
        cpu_s: Processor seconds in ``worker_covered_s``.
        read_bytes, written_bytes: Disk traffic in ``worker_covered_s``.
        cpus: Processor cores of each worker, 0 for no limit.
        memory_gib: Peak memory of one worker.
        simulated: Its GPUs were simulated; their activity followed the use of processors.
    """

    held_s: Amount = 0
    covered_s: Amount = 0
    active_s: Amount = 0
    samples: Count = 0
    sm_covered_s: Amount = 0
    sm_active_s: Amount = 0
    energy_j: Amount = 0
    throttled_s: Amount = 0
    xids: Count = 0
    lost_s: Amount = 0
    gpu_memory_gib: Amount | None = None
    gpu_memory_total_gib: Amount | None = None
    gpus: Count = 0
    busy_gpus: Count = 0
    busy_workers: Count = 0
    busy_gpus_of_worker: Count = 0
    least_activity: Fraction | None = None
    most_activity: Fraction | None = None
    ran_s: Amount = 0
    before_s: Amount | None = None
    after_s: Amount | None = None
    between_s: Amount | None = None
    nodes: Count = 0
    worker_s: Amount = 0
    worker_covered_s: Amount = 0
    cpu_s: Amount = 0
    cpus: Amount = 0
    memory_gib: Amount | None = None
    read_bytes: Count | None = None
    written_bytes: Count | None = None
    simulated: bool = False

    @property
    def coverage(self) -> float:
        """Return the measured share of the GPU time, 0 to 1."""
        return min(self.covered_s / self.held_s, 1.0) if self.held_s else 0.0

    @property
    def activity(self) -> float:
        """Return the share of the measured GPU time in which a kernel ran, 0 to 1."""
        return self.active_s / self.covered_s if self.covered_s else 0.0


class UsageFigure(Struct, frozen=True):
    """Number of a usage note, with its unit."""

    name: str
    text: str


class JobUsage(Struct, frozen=True, kw_only=True):
    """Answer of ``usage``: how an ended job used its GPUs.

    Attributes:
        figures: Three numbers; fewer where no more was measured.
        text: The numbers in a sentence.
        change: Recommended change for the next run, empty for none.
        option: Option of ``submit`` and ``%%train`` that makes the change, empty for none.
        rule: Rule that found the change, null for none.
        coverage: Measured share of the GPU time, 0 to 1. Under 0.9 no change is recommended.
        measured: All measurements; null where nothing is known.
    """

    job: str
    figures: list[UsageFigure]
    text: str
    change: str = ""
    option: str = ""
    rule: str | None = None
    coverage: float = 0.0
    simulated: bool = False
    measured: JobMeasurements | None = None
