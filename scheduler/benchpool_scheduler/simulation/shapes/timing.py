"""Time the decision core over a shape: one warm-up, then at least five runs.

``run`` measures in this process and ``in_a_fresh_process`` in a new one, so that one shape does not
affect the memory or caches of another. The peak memory is that of the whole new process:
interpreter, imports, the shape and all runs.
"""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.model import JobId, Plan, Snapshot
from benchpool_scheduler.core.plan import decide, decide_on
from benchpool_scheduler.errors import ServerFault
from benchpool_scheduler.simulation.shapes.builders import SHAPES, Built
from benchpool_scheduler.simulation.shapes.memory import peak_rss_mib
from benchpool_scheduler.simulation.shapes.tallies import Tally, tally

RUNS, MOST_RUNS, ENOUGH_MS = 5, 25, 500.0
"""Minimum and maximum number of runs, and the total time after which runs stop, in milliseconds."""

COLLECTIONS = (10_000, 10, 1_000)
"""Thresholds of Python's garbage collection in the new process, as in ``service.process``."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One row of ``benchpool bench time``.

    Attributes:
        jobs: Jobs in the shape, running and queued.
        result: ``ok: `` and the numbers of the plan, or ``FAIL: `` and the expectation.
        ms_min: Milliseconds of the fastest run; ``ms_median`` and ``ms_max`` likewise.
        peak_rss_mib: Peak resident memory of the process.
    """

    shape: str
    nodes: int
    jobs: int
    result: str
    ms_min: float
    ms_median: float
    ms_max: float
    peak_rss_mib: float

    @property
    def ok(self) -> bool:
        """Return whether the shape had its expected result."""
        return self.result.startswith("ok")


def run(shape: str, nodes: int | None = None) -> Timed:
    """Build a shape and time it. Errors: InvalidInput for an impossible size."""
    built = SHAPES[shape].build(nodes)
    rest = _without(built.snapshot, built.ends)
    once = _whole_pass if built.ends is None else _after_an_end
    once(built)
    times: list[float] = []
    tallies: list[Tally] = []
    while len(times) < RUNS or (sum(times) < ENOUGH_MS and len(times) < MOST_RUNS):
        milliseconds, plan = once(built)
        times.append(milliseconds)
        tallies.append(tally(rest, plan))
    return Timed(
        shape=shape,
        nodes=len(built.snapshot.nodes),
        jobs=len(built.snapshot.jobs),
        result=result_of(built, tallies),
        ms_min=round(min(times), 3),
        ms_median=round(statistics.median(times), 3),
        ms_max=round(max(times), 3),
        peak_rss_mib=round(peak_rss_mib(), 1),
    )


def result_of(built: Built, tallies: Sequence[Tally]) -> str:
    """Return the first unexpected result, else the common result of all plans."""
    for found in tallies:
        wrong = built.expected(found)
        if wrong is not None:
            return f"FAIL: {found.text}; {wrong}"
    return f"ok: {tallies[0].text}"


def in_a_fresh_process(shape: str, nodes: int | None = None) -> Timed:
    """Time a shape as ``run`` does, in a new process. Errors: InvalidInput, as ``run``."""
    size = SHAPES[shape].size(nodes)
    words = [sys.executable, "-m", __package__, shape, str(size)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ServerFault(f"The run of {shape} ended with {done.returncode}: {last}")
    return Timed(**json.loads(done.stdout))


def as_json(timed: Timed) -> dict[str, object]:
    """Return the row as ``--json`` prints it (formats, section 3)."""
    return asdict(timed)


# --------------------------------------------------------------------------- one run


def _whole_pass(built: Built) -> tuple[float, Plan]:
    """Time a pass from a frozen snapshot to a plan with every reason."""
    return _timed(lambda: decide(built.snapshot))


def _after_an_end(built: Built) -> tuple[float, Plan]:
    """Time the pass after the end of one job, in a kept cluster state.

    The state is rebuilt before each run and has seen one pass, as in the service. Neither step is
    timed.
    """
    state = ClusterState.of(built.snapshot)
    decide_on(state, built.snapshot.now_s)
    ended = JobId(built.ends or "")

    def drop_and_decide() -> Plan:
        state.drop(ended)
        return decide_on(state, built.snapshot.now_s, explain=True)

    return _timed(drop_and_decide)


def _timed(work: Callable[[], Plan]) -> tuple[float, Plan]:
    gc.collect()
    begun = time.perf_counter()
    plan = work()
    return (time.perf_counter() - begun) * 1000, plan


def _without(snapshot: Snapshot, ended: JobId | None) -> Snapshot:
    if ended is None:
        return snapshot
    return replace(snapshot, jobs=tuple(job for job in snapshot.jobs if job.id != ended))
