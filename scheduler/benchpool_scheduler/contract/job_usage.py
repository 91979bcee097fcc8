"""How an ended job used what it held: what is kept of it, and the note that is made from that."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]
Fraction = Annotated[float, Meta(ge=0, le=1)]


class JobMeasurements(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured of a job until its end, in numbers; null or 0 where nothing was.

    Attributes:
        held_s: GPU seconds that its workers held in all attempts; ``covered_s``: those of them that
            were measured, and ``active_s`` those in which a kernel ran. ``samples``: of one GPU, on
            average.
        sm_covered_s, sm_active_s: Likewise of the multiprocessors. ``energy_j``: joules.
            ``throttled_s``: GPU seconds slower than it could. ``xids``: errors of the driver.
        lost_s: GPU seconds of work that pauses cost.
        gpu_memory_gib: The most in use on one GPU; ``gpu_memory_total_gib``: what there is.
        gpus: GPUs that the last attempt had; ``busy_gpus``: those that ran a kernel for over 1 % of
            the time, ``busy_workers``: workers with such a GPU, and ``busy_gpus_of_worker``: how
            many of them one worker had at most.
        least_activity, most_activity: Of the least and the most active of these GPUs.
        ran_s: Length of the last attempt. ``before_s``: of that, before the first kernel.
            ``after_s``: after the last one. ``between_s``: without any kernel in between.
        nodes: Machines of the last attempt.
        worker_s: Seconds of all workers. ``worker_covered_s``: those that were measured, in which
            they used ``cpu_s`` seconds of processors, and disks for ``read_bytes`` and
            ``written_bytes``.
        cpus: Processor cores that each was given, 0 for no bound. ``memory_gib``: the most that one
            worker used.
        simulated: Its GPUs were simulated: their activity followed the use of processors.
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
        """What part of the GPU time was measured."""
        return min(self.covered_s / self.held_s, 1.0) if self.held_s else 0.0

    @property
    def activity(self) -> float:
        """What part of the measured GPU time a kernel ran in."""
        return self.active_s / self.covered_s if self.covered_s else 0.0


class UsageFigure(Struct, frozen=True):
    """One of the numbers of a note, with its unit."""

    name: str
    text: str


class JobUsage(Struct, frozen=True, kw_only=True):
    """Answer of ``usage``: how an ended job used what it held.

    Attributes:
        figures: Three numbers; fewer where no more was measured.
        text: What they say, in a sentence. ``change``: what to do otherwise next time, empty for
            nothing. ``option``: how ``submit`` and ``%%train`` are told to, empty where no option
            does it.
        rule: The rule by which that was found, null for none.
        coverage: What part of the GPU time was measured, 0 to 1. Under 0.9 nothing is found.
        measured: All numbers; null where nothing is known.
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
