"""Rules for the note at a job's end: a table in order of precedence.

Each rule is a pure function of the measurements. The first rule that applies gives the note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchpool_scheduler.accounting.job_notes import advice
from benchpool_scheduler.accounting.job_notes.advice import NoteAdvice
from benchpool_scheduler.accounting.job_notes.finished import FinishedJob
from benchpool_scheduler.phrases import percent

LONG_S = 600.0
"""Time without kernels below which no change is advised, in seconds."""

ONE_CORE = (0.9, 1.25)
"""Bounds of the average core count at which a worker counts as using one core."""

FEW_MB_S = 10.0
"""Read rate below which a job does not wait for disks, in MB/s."""


@dataclass(frozen=True, slots=True)
class NoteRule:
    """One rule.

    Attributes:
        name: Its name in the API. ``when``: the condition in words, for the reference, with
            ``{}`` for the threshold.
        threshold: The threshold passed to ``holds``.
        samples: Minimum number of samples per GPU.
        advises: Function that returns the diagnosis and the change.
        simulated: The rule does not use GPU activity, so it also applies to simulated GPUs.
    """

    name: str
    when: str
    threshold: float
    samples: int
    holds: Callable[[FinishedJob, float], bool]
    advises: Callable[[FinishedJob], NoteAdvice]
    simulated: bool = False

    @property
    def condition(self) -> str:
        """The condition with its threshold.

        >>> RULES[1].condition
        'it failed, and the memory of a GPU was in use to 97 % or more'
        """
        whole = self.threshold >= 1
        return self.when.format(f"{self.threshold:g}" if whole else percent(self.threshold))

    def finds(self, job: FinishedJob) -> bool:
        """Return whether the rule applies to a job and enough was measured for it."""
        measured = job.measured
        looked_at = measured.samples >= self.samples and (self.simulated or not measured.simulated)
        return looked_at and self.holds(job, self.threshold)


def _driver_errors(job: FinishedJob, least: float) -> bool:
    return job.measured.xids >= least


def _lost_to_pauses(job: FinishedJob, least: float) -> bool:
    return bool(job.measured.held_s) and job.measured.lost_s / job.measured.held_s >= least


def _gpu_memory_full(job: FinishedJob, least: float) -> bool:
    return job.failed and (job.gpu_memory or 0.0) >= least


def _memory_full(job: FinishedJob, least: float) -> bool:
    asked, used = job.spec.memory_gib, job.measured.memory_gib
    return bool(asked) and used is not None and used / asked >= least


def _never_used(job: FinishedJob, most: float) -> bool:
    return job.measured.activity < most and not job.measured.busy_gpus


def _idle_gpus(job: FinishedJob, least: float) -> bool:
    return 0 < job.measured.busy_gpus <= job.measured.gpus - least


def _slow_start(job: FinishedJob, least: float) -> bool:
    before_s = job.measured.before_s or 0.0
    return before_s >= LONG_S and job.quiet(before_s) >= least


def _long_tail(job: FinishedJob, least: float) -> bool:
    after_s = job.measured.after_s or 0.0
    return after_s >= LONG_S and job.quiet(after_s) >= least


def _stops_between(job: FinishedJob, least: float) -> bool:
    between_s = job.measured.between_s or 0.0
    return between_s >= LONG_S and job.quiet(between_s) >= least


def _cpus_full(job: FinishedJob, most: float) -> bool:
    used, given = job.used_cpus, job.measured.cpus
    return job.measured.activity < most and used is not None and 0 < 0.9 * given <= used


def _one_cpu(job: FinishedJob, most: float) -> bool:
    used, given = job.used_cpus, job.measured.cpus
    low, high = ONE_CORE
    several = given == 0 or given >= 2
    return job.measured.activity < most and several and used is not None and low <= used <= high


def _reads_disks(job: FinishedJob, least: float) -> bool:
    busy = job.measured.activity
    return busy < 0.5 and (job.read_mb_s or 0.0) >= least


def _waits(job: FinishedJob, most: float) -> bool:
    used, read = job.used_cpus, job.read_mb_s
    still = used is not None and used < 0.2 and (read is None or read < FEW_MB_S)
    return job.measured.activity < most and still


def _uneven(job: FinishedJob, least: float) -> bool:
    low, high = job.measured.least_activity, job.measured.most_activity
    return low is not None and high is not None and high - low >= least


def _over_the_network(job: FinishedJob, most: float) -> bool:
    fits = job.spec.workers > 1 and job.spec.total_gpus <= job.pool.gpus
    asked = job.spec.preferred_level is not None or job.spec.required_level is not None
    apart = job.measured.nodes > 1 and not job.spec.spread and not asked
    return job.measured.activity < most and fits and apart


def _small_kernels(job: FinishedJob, most: float) -> bool:
    share = job.sm_activity
    return job.measured.activity >= 0.8 and share is not None and share < most


def _large_gpu(job: FinishedJob, most: float) -> bool:
    share = job.gpu_memory
    return share is not None and share < most and advice.smaller_model(job) is not None


def _cpus_unused(job: FinishedJob, most: float) -> bool:
    used, asked = job.used_cpus, job.spec.cpus
    return asked >= 4 and used is not None and used / asked < most


def _memory_unused(job: FinishedJob, most: float) -> bool:
    used, asked = job.measured.memory_gib, job.spec.memory_gib
    return asked >= 16 and used is not None and used / asked < most


def _far_limit(job: FinishedJob, least: float) -> bool:
    limit_s, ran_s = job.spec.time_limit_s, job.measured.ran_s
    return not job.failed and limit_s is not None and limit_s >= least * ran_s


RULES: Sequence[NoteRule] = (
    NoteRule("driver-errors", "the driver reported at least {} error of its GPUs",
             1, 1, _driver_errors, advice.driver_errors),
    NoteRule("gpu-memory-full", "it failed, and the memory of a GPU was in use to {} or more",
             0.97, 1, _gpu_memory_full, advice.gpu_memory_full),
    NoteRule("memory-full", "it asked for memory, and a worker used {} of it or more",
             0.95, 1, _memory_full, advice.memory_full, simulated=True),
    NoteRule("never-used", "its GPUs ran a kernel for under {} of the time",
             0.01, 30, _never_used, advice.never_used),
    NoteRule("idle-gpus", "at least {} of its GPUs ran no kernel, and others did",
             1, 30, _idle_gpus, advice.idle_gpus),
    NoteRule("lost-to-pauses", "pauses cost {} of its GPU time or more",
             0.2, 10, _lost_to_pauses, advice.lost_to_pauses, simulated=True),
    NoteRule("slow-start", "no kernel ran in the first {} of the last attempt, and for 10 min",
             0.2, 60, _slow_start, advice.slow_start),
    NoteRule("long-tail", "no kernel ran in the last {} of the last attempt, and for 10 min",
             0.2, 60, _long_tail, advice.long_tail),
    NoteRule("cpus-full", "GPUs busy under {}, and all processor cores that it was given were used",
             0.7, 30, _cpus_full, advice.cpus_full),
    NoteRule("one-cpu", "GPUs busy under {}, and each worker used one processor core of several",
             0.7, 30, _one_cpu, advice.one_cpu),
    NoteRule("reads-disks", "GPUs busy under 50 %, and each worker read {} MB/s or more",
             100, 30, _reads_disks, advice.reads_disks),
    NoteRule("waits", "GPUs busy under {}, under a fifth of a core used and under 10 MB/s read",
             0.15, 30, _waits, advice.waits),
    NoteRule("over-the-network", "GPUs busy under {}, and its workers ran on several machines "
             "although one has as many GPUs", 0.5, 30, _over_the_network, advice.over_the_network),
    NoteRule("stops-between", "for {} of the last attempt, and 10 min, no kernel ran between the "
             "first and the last", 0.3, 60, _stops_between, advice.stops_between),
    NoteRule("uneven", "its busiest GPU was busy for {} of the time more than the least busy one",
             0.4, 30, _uneven, advice.uneven),
    NoteRule("small-kernels", "GPUs busy 80 % or more, on under {} of the multiprocessors",
             0.25, 30, _small_kernels, advice.small_kernels),
    NoteRule("large-gpu", "under {} of the memory was used, and the pool has smaller GPUs that fit",
             0.3, 60, _large_gpu, advice.large_gpu),
    NoteRule("cpus-unused", "it asked for 4 cores or more, and used under {} of them",
             0.25, 60, _cpus_unused, advice.cpus_unused, simulated=True),
    NoteRule("memory-unused", "it asked for 16 GiB or more, and used under {} of it",
             0.25, 60, _memory_unused, advice.memory_unused, simulated=True),
    NoteRule("far-limit", "its time limit was {} times as long as it ran, or more",
             4, 60, _far_limit, advice.far_limit, simulated=True),
)  # fmt: skip
"""Rules in their order: failures first, then idle GPUs, then sizes that could be smaller."""
