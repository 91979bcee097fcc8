"""Number of modules of the core that one waiting job passes through in one pass.

A *stay* is a stretch of calls inside one module. A *return* is a stay in a module that was left
before. The job waits for a GPU that another job of its project holds within quota: it is examined,
may not preempt, and gets its reason. The bounds are the present values, to be lowered.
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
    """Return the modules of the core that a pass enters, in order."""
    state = ClusterState.of(POOL)
    decide_on(state, 0.0, explain=explain)  # fill the state kept between passes
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
    """Return the numbers of stays, of places and of returns."""
    return len(places), len(set(places)), len(places) - len(set(places))


def test_waiting_job_path_is_bounded() -> None:
    stays, modules, returns = figures(walked(explain=False))
    assert stays <= 81
    assert modules <= 18
    assert returns <= 63


def test_waiting_job_reason_path_is_bounded() -> None:
    stays, modules, returns = figures(walked(explain=True))
    assert stays <= 163
    assert modules <= 27
    assert returns <= 136


def test_waiting_job_visits_few_rooms() -> None:
    rooms = [room for room, _ in groupby(one.parent for one in walked(explain=True))]
    stays, number, returns = figures(rooms)
    assert number <= 8
    assert stays <= 125
    assert returns <= 117
