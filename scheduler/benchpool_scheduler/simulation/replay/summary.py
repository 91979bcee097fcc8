"""Figures of a replay by their keys (formats, section 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.accounting.percentiles import percentile
from benchpool_scheduler.simulation.replay import floors
from benchpool_scheduler.simulation.replay.engine import ReplayClock, Run
from benchpool_scheduler.simulation.replay.trace import DAY_S

HOUR_S = 3600.0
MINUTE_S = 60.0
SHORT_S = 3600.0
"""Run time below which a job counts as short, in seconds."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Result of a replay; the fields are the keys, in their order.

    Attributes:
        allocated_utilisation: GPU-seconds held by jobs over those present in the window.
        useful_utilisation: The same without restarts and lost progress.
        makespan_d: From the first submission to the last end, in days.
        lost_gpu_h: GPU-hours of restarts and lost progress, of all jobs.
        passes: Passes of the policy. ``pass_ms_p50``: median duration of a pass.
    """

    jobs: int
    gpus: int
    policy: str
    allocated_utilisation: float
    useful_utilisation: float
    mean_wait_h: float
    p50_wait_h: float
    p95_wait_h: float
    p99_wait_h: float
    short_job_wait_min: float
    mean_jct_h: float
    makespan_d: float
    preemptions_per_job: float
    lost_gpu_h: float
    floor_mean_jct_h: float
    floor_makespan_d: float
    ceiling_utilisation: float
    passes: int
    pass_ms_p50: float
    pass_ms_p99: float
    wall_s: float


def summarise(
    runs: Sequence[Run],
    clock: ReplayClock,
    *,
    gpus: int,
    policy: str,
    span_s: tuple[float, float],
    wall_s: float,
) -> Summary:
    """Return the figures of a finished replay.

    Args:
        runs: All of them, by submission, ended.
        span_s: Begin and end of the span in which utilisation is measured.
    """
    trace = [run.job for run in runs]
    present = gpus * (span_s[1] - span_s[0])
    held, lost = clock.meter.held_gpu_s, clock.meter.lost_gpu_s
    waits = sorted(run.wait_s for run in runs)
    short = [run.wait_s for run in runs if run.job.duration_s < SHORT_S]
    return Summary(
        jobs=len(runs),
        gpus=gpus,
        policy=policy,
        allocated_utilisation=_over(held, present),
        useful_utilisation=_over(held - lost, present),
        mean_wait_h=mean(waits) / HOUR_S,
        p50_wait_h=percentile(waits, 50) / HOUR_S,
        p95_wait_h=percentile(waits, 95) / HOUR_S,
        p99_wait_h=percentile(waits, 99) / HOUR_S,
        short_job_wait_min=mean(short) / MINUTE_S,
        mean_jct_h=mean([run.jct_s for run in runs]) / HOUR_S,
        makespan_d=(max(run.end_s for run in runs) - trace[0].submit_s) / DAY_S,
        preemptions_per_job=sum(run.preemptions for run in runs) / len(runs),
        lost_gpu_h=sum(run.lost_gpu_s for run in runs) / HOUR_S,
        floor_mean_jct_h=floors.mean_jct_s(trace, gpus) / HOUR_S,
        floor_makespan_d=floors.makespan_s(trace, gpus) / DAY_S,
        ceiling_utilisation=floors.utilisation(trace, gpus, *span_s),
        passes=len(clock.pass_ms),
        pass_ms_p50=percentile(sorted(clock.pass_ms), 50),
        pass_ms_p99=percentile(sorted(clock.pass_ms), 99),
        wall_s=wall_s,
    )


def mean(values: Sequence[float]) -> float:
    """Return the mean, or 0 without values."""
    return math.fsum(values) / len(values) if values else 0.0


def _over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
