"""How far one waiting job walks through the core in one pass.

A *stay* is a stretch of calls inside one module, a *return* is a stay in a module that was left
before. The job waits for a GPU that another job of its project holds within the quota: it is
looked at, may not preempt, and gets its reason. The bounds are what is so today, to be lowered.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from types import FrameType

from benchpool_scheduler import core
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)
from benchpool_scheduler.core.plan import decide_on

CORE = Path(core.__file__).parent

NODE, GPU, PROJECT = NodeName("box"), GpuId("a"), ProjectName("susan")
POOL = Snapshot(
    nodes=(Node(NODE, (GPU,)),),
    projects=(Project(PROJECT, quota=1),),
    jobs=(
        JobFacts(
            JobId("runs"),
            PROJECT,
            JobSpec(),
            activity=Activity.RUNNING,
            held=(Worker(NODE, (GPU,)),),
        ),
        JobFacts(JobId("waits"), PROJECT, JobSpec()),
    ),
)


def walked(*, explain: bool) -> list[Path]:
    """Return the modules of the core that a pass is in, one after the other."""
    state = ClusterState.of(POOL)
    decide_on(state, 0.0, explain=explain)  # what is kept from pass to pass is there
    seen: list[Path] = []

    def profile(frame: FrameType | None, event: str, argument: object) -> None:
        if event == "return" and frame is not None:
            frame = frame.f_back
        if frame is None or event not in ("call", "return"):
            return
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(CORE):
            seen.append(file)

    sys.setprofile(profile)
    try:
        decide_on(state, 0.0, explain=explain)
    finally:
        sys.setprofile(None)
    return [module for module, _ in groupby(seen)]


def figures(places: list[Path]) -> tuple[int, int, int]:
    """Return stays, places, and returns to places that were left."""
    return len(places), len(set(places)), len(places) - len(set(places))


def test_a_waiting_job_walks_no_further_than_it_does_today() -> None:
    stays, modules, returns = figures(walked(explain=False))
    assert stays <= 81
    assert modules <= 18
    assert returns <= 63


def test_its_reason_takes_no_further_walk_than_today() -> None:
    stays, modules, returns = figures(walked(explain=True))
    assert stays <= 163
    assert modules <= 27
    assert returns <= 136


def test_it_walks_through_few_rooms() -> None:
    rooms = [room for room, _ in groupby(one.parent for one in walked(explain=True))]
    stays, number, returns = figures(rooms)
    assert number <= 8
    assert stays <= 125
    assert returns <= 117
