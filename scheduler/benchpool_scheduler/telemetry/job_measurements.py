"""Measurements of one job, reduced to the few numbers that are kept with it; pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from benchpool_scheduler.contract.job_usage import JobMeasurements
from benchpool_scheduler.telemetry.live import IDLE_SHARE
from benchpool_scheduler.telemetry.reading import ActivityBucket, WorkerTotal


@dataclass(frozen=True, slots=True)
class JobBooks:
    """Facts from the ledger about an ended job.

    Attributes:
        held_s: GPU seconds that it held; ``worker_s``: seconds of its workers.
        last: Number of the last attempt that ran, from ``begin`` until ``end``, epoch seconds, on
            that number of ``nodes``.
        lost_s: GPU seconds of work that pauses cost.
        gpu_memory_gib: Memory of the smallest of its GPUs, None if unknown.
    """

    held_s: float
    worker_s: float
    last: int
    begin: float
    end: float
    nodes: int
    lost_s: float = 0.0
    gpu_memory_gib: float | None = None


def measured(
    books: JobBooks,
    totals: Sequence[ActivityBucket],
    series: Sequence[ActivityBucket],
    workers: Sequence[WorkerTotal],
    tick_s: float,
) -> JobMeasurements:
    """Return the measurements of a job.

    Args:
        totals: Totals by worker and GPU. ``series``: the same over time, of all attempts.
        workers: Totals of each worker's processes.
        tick_s: Seconds between two samples.
    """
    covered_s = sum(it.covered_s for it in totals)
    gpus = len({(it.gpu, it.holder.attempt) for it in totals if it.covered_s})
    last = [it for it in totals if it.holder.attempt == books.last and it.covered_s]
    before_s, after_s, between_s = _quiet(series, books)
    return JobMeasurements(
        held_s=_s(books.held_s),
        covered_s=_s(covered_s),
        active_s=_s(sum(it.active_s for it in totals)),
        samples=round(covered_s / gpus / tick_s) if gpus and tick_s else 0,
        sm_covered_s=_s(sum(it.sm_covered_s for it in totals)),
        sm_active_s=_s(sum(it.sm_active_s for it in totals)),
        energy_j=round(sum(it.energy_j for it in totals)),
        throttled_s=_s(sum(it.throttled_s for it in totals)),
        xids=sum(it.xids for it in totals),
        lost_s=_s(books.lost_s),
        gpu_memory_gib=_gib(_most(it.memory_max_gib for it in totals)),
        gpu_memory_total_gib=_gib(books.gpu_memory_gib),
        ran_s=_s(max(books.end - books.begin, 0.0)),
        before_s=before_s,
        after_s=after_s,
        between_s=between_s,
        nodes=books.nodes,
        worker_s=_s(books.worker_s),
        simulated=any(it.simulated for it in totals),
        **_spread(last),
        **_processors(workers),
    )


def _spread(last: Sequence[ActivityBucket]) -> dict[str, Any]:
    """Return the distribution of the last attempt's activity over its GPUs and workers."""
    shares = [it.active_s / it.covered_s for it in last]
    busy: defaultdict[int | None, int] = defaultdict(int)
    for bucket, share in zip(last, shares, strict=True):
        if share > IDLE_SHARE:
            busy[bucket.holder.worker] += 1
    return {
        "gpus": len(last),
        "busy_gpus": sum(busy.values()),
        "busy_workers": len(busy),
        "busy_gpus_of_worker": max(busy.values(), default=0),
        "least_activity": _share(min(shares, default=None)),
        "most_activity": _share(max(shares, default=None)),
    }


def _processors(workers: Sequence[WorkerTotal]) -> dict[str, Any]:
    read = [it.read_bytes for it in workers if it.read_bytes is not None]
    written = [it.written_bytes for it in workers if it.written_bytes is not None]
    return {
        "worker_covered_s": _s(sum(it.covered_s for it in workers)),
        "cpu_s": _s(sum(it.cpu_s for it in workers)),
        "cpus": workers[-1].cpus if workers else 0.0,
        "memory_gib": _gib(_most(it.memory_peak_gib for it in workers)),
        "read_bytes": sum(read) if read else None,
        "written_bytes": sum(written) if written else None,
    }


def _quiet(
    series: Sequence[ActivityBucket], books: JobBooks
) -> tuple[float | None, float | None, float | None]:
    """Return the seconds without a kernel in the last attempt: before, after and between activity.

    All are None when it ran no kernel or nothing was measured. Gaps in the samples are not counted.
    """
    active: dict[int, float] = {}
    spans: dict[int, int] = {}
    for it in series:
        if it.holder.attempt == books.last and it.covered_s:
            share = it.active_s / it.covered_s
            active[it.begin] = max(active.get(it.begin, 0.0), share)
            spans[it.begin] = it.span_s
    busy = sorted(begin for begin, share in active.items() if share > IDLE_SHARE)
    if not busy:
        return None, None, None
    first, last = busy[0], busy[-1]
    between = sum(spans[at] for at in active if first < at < last and active[at] <= IDLE_SHARE)
    before = max(first - books.begin, 0.0)
    return _s(before), _s(max(books.end - last - spans[last], 0.0)), _s(between)


def _most(values: Iterable[float | None]) -> float | None:
    return max((it for it in values if it is not None), default=None)


def _s(seconds: float) -> float:
    return round(seconds, 1)


def _gib(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def _share(value: float | None) -> float | None:
    return None if value is None else round(min(value, 1.0), 4)
