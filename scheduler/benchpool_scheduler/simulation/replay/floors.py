"""Bounds that hold for every schedule: on completion from below, on use from above.

They hold for any scheduler, including one that knows every run time beforehand, preempts at no cost
and is bound by no quota, node or gang. They are therefore not always reachable.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import accumulate

from benchpool_scheduler.simulation.replay.trace import TraceJob


def mean_jct_s(jobs: Sequence[TraceJob], gpus: int) -> float:
    """Return a lower bound of the mean completion time (submission to end), in seconds.

    It is the larger of two bounds. The first is the mean run time, since no job ends sooner than
    its run time after its submission. For the second, a pool of N GPUs does no more than one
    machine that is N times as fast, on which a job of g GPUs and run time d takes ``g * d / N``.
    There the rule of the shortest remaining time is optimal (L. Schrage, "A proof of the optimality
    of the shortest remaining processing time discipline", Operations Research 16, 1968). The
    relaxation to one fast machine is that of W. Eastman, S. Even, I. Isaacs, "Bounds for the
    optimal scheduling of n jobs on m processors", Management Science 11, 1964.

    Args:
        jobs: By submission.

    >>> two = [TraceJob(2, 0.0, 60.0, 1, "p"), TraceJob(3, 0.0, 60.0, 1, "p")]
    >>> mean_jct_s(two, 2), mean_jct_s(two, 1)
    (60.0, 90.0)
    """
    mean_duration_s = sum(job.duration_s for job in jobs) / len(jobs)
    return max(mean_duration_s, _shortest_first_mean_s(jobs, gpus))


def _shortest_first_mean_s(jobs: Sequence[TraceJob], gpus: int) -> float:
    """Return the mean completion time on one machine of the whole pool's speed."""
    open_jobs: list[tuple[float, int]] = []
    now_s = total_s = 0.0
    upcoming = [*(job.submit_s for job in jobs[1:]), float("inf")]
    for index, (job, next_s) in enumerate(zip(jobs, upcoming, strict=True)):
        now_s = max(now_s, job.submit_s)
        heapq.heappush(open_jobs, (job.work_gpu_s / gpus, index))
        while open_jobs and now_s < next_s:
            left_s, shortest = heapq.heappop(open_jobs)
            if now_s + left_s <= next_s:
                now_s += left_s
                total_s += now_s - jobs[shortest].submit_s
            else:
                heapq.heappush(open_jobs, (left_s - (next_s - now_s), shortest))
                now_s = next_s
    return total_s / len(jobs)


def makespan_s(jobs: Sequence[TraceJob], gpus: int) -> float:
    """Return a lower bound of the time from the first submission to the last end, in seconds.

    It is the larger of two bounds. The first is the largest sum of one job's submission and run
    time: a job is a critical path of one. The second is, for every submission r, the work submitted
    from r on, divided by all GPUs, after r. For the first submission this is total work over GPUs.
    Both are the classical bounds of list scheduling (R. Graham, "Bounds on multiprocessing timing
    anomalies", SIAM Journal on Applied Mathematics 17, 1969), with release times.

    >>> makespan_s([TraceJob(2, 0.0, 60.0, 1, "p"), TraceJob(3, 30.0, 60.0, 2, "p")], 2)
    90.0
    """
    first_s = jobs[0].submit_s
    path_s = max(job.submit_s + job.duration_s for job in jobs)
    work = list(accumulate(job.work_gpu_s for job in reversed(jobs)))[::-1]
    spread_s = max(job.submit_s + rest / gpus for job, rest in zip(jobs, work, strict=True))
    return max(path_s, spread_s) - first_s


def utilisation(jobs: Sequence[TraceJob], gpus: int, from_s: float, until_s: float) -> float:
    """Return an upper bound of the useful GPU-seconds in a span, over the GPU-seconds present.

    D(t) is the demand if no job ever waited, and W(t) its integral from the start. Until t no
    scheduler can have done more than W(t), and afterwards at most N at a time. So the work done in
    the span is at most the least of ``W(t) + N (until - t)`` over all t in it (the fluid queue of
    E. Reich, "On the integrodifferential equation of Takacs", Annals of Mathematical Statistics 29,
    1958). W is straight between submissions and ends, so these instants suffice. A job that was
    submitted before the span counts with its remaining work.

    >>> utilisation([TraceJob(2, 0.0, 60.0, 2, "p")], 2, 0.0, 120.0)
    0.5
    """
    steps = [(job.submit_s, job.gpus) for job in jobs]
    steps += [(job.submit_s + job.duration_s, -job.gpus) for job in jobs]
    demand, now_s, done = 0, from_s, 0.0
    least = gpus * (until_s - from_s)
    for at_s, change in [*sorted(steps), (until_s, 0)]:
        if at_s > now_s:
            reached_s = min(at_s, until_s)
            done += demand * max(0.0, reached_s - now_s)
            now_s = max(now_s, reached_s)
            least = min(least, done + gpus * (until_s - now_s))
        demand += change
    return least / (gpus * (until_s - from_s)) if until_s > from_s else 0.0
