"""Results of a run of a mix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from benchpool_scheduler.admissions.mixes import Mix
from benchpool_scheduler.admissions.runtime import TimedRuntime


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one run.

    Attributes:
        wall_s: Real seconds from the first creation until the last job had ended.
        cpu_s: Processor seconds of the process, including the creating side.
        makespan_s: As ``wall_s``, on the clock of the run.
        admissions_per_s: Jobs per real second, as Kueue counts them: each job once.
        latency_s: Mean time from a job's creation to its latest admission, by class.
        useful_utilisation: Work done and kept, as part of units times ``makespan_s``.
        evictions: Number of preempted jobs; each began again from zero.
        peak_rss_mib: Peak resident memory of the process, including the creating side.
    """

    mix: str
    clock: str
    policy: str
    jobs: int
    units: int
    wall_s: float
    cpu_s: float
    makespan_s: float
    admissions_per_s: float
    latency_s: Mapping[str, float]
    useful_utilisation: float
    evictions: int
    peak_rss_mib: float

    @classmethod
    def of(
        cls,
        mix: Mix,
        runtime: TimedRuntime,
        created: Mapping[str, tuple[str, float]],
        *,
        clock: str,
        policy: str,
        wall_s: float,
        cpu_s: float,
        start: float,
        peak_rss_mib: float,
    ) -> Figures:
        """Return the figures of a run.

        Args:
            created: Class and time of creation by job.
            start: Begin of the run, on its clock.
        """
        waits: dict[str, list[float]] = {each.name: [] for each in mix.classes}
        for job, (name, at) in created.items():
            waits[name].append(runtime.admitted[job] - at)
        makespan = runtime.last_end - start
        return cls(
            mix=mix.name,
            clock=clock,
            policy=policy,
            jobs=mix.jobs,
            units=mix.units,
            wall_s=round(wall_s, 2),
            cpu_s=round(cpu_s, 2),
            makespan_s=round(makespan, 2),
            admissions_per_s=round(mix.jobs / wall_s, 1),
            latency_s={name: round(fmean(times), 3) for name, times in waits.items()},
            useful_utilisation=round(mix.unit_seconds / (mix.units * makespan), 4),
            evictions=runtime.evictions,
            peak_rss_mib=round(peak_rss_mib, 1),
        )
