"""What-if over a recorded workload: the same jobs in two pools."""

from __future__ import annotations

import csv
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from benchpool_scheduler.core.model import GpuId, Node, NodeName, Policy, Project, ProjectName
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.replay.engine import Costs
from benchpool_scheduler.simulation.replay.report import ReplayOptions, replay
from benchpool_scheduler.simulation.replay.trace import TraceJob
from benchpool_scheduler.simulation.whatif import ProjectComparison, Replayed, Side, replay_both

HOUR = 3600.0
REAL_TIME = ("wall_s", "pass_ms_p50", "pass_ms_p99")


def side(gpus: int, *projects: Project, per_node: int = 8) -> Side:
    nodes = [
        Node(NodeName(f"n{at}"), tuple(GpuId(f"{at}/{g}") for g in range(min(per_node, gpus - at))))
        for at in range(0, gpus, per_node)
    ]
    return Side(tuple(nodes), projects, Policy())


def project(name: str, quota: int, **more: object) -> Project:
    return Project(ProjectName(name), quota=quota, **more)  # type: ignore[arg-type]


def job(submit_h: float, hours: float, gpus: int, name: str) -> TraceJob:
    return TraceJob(2, submit_h * HOUR, hours * HOUR, gpus, name)


def of(found: Replayed, name: str) -> ProjectComparison:
    return next(it for it in found.projects if it.name == name)


NIGHT = [job(0, 10, 4, "vision"), job(0, 10, 4, "vision"), job(1, 2, 4, "speech")]
"""Vision fills eight GPUs for ten hours; after one hour speech submits two hours of work."""


def test_quota_moves_wait_between_projects() -> None:
    none = side(8, project("vision", 8), project("speech", 0))
    half = side(8, project("vision", 4), project("speech", 4))
    found = replay_both(NIGHT, none, half, Costs(restart_s=0))
    assert of(found, "speech").before.mean_wait_h == 9
    assert of(found, "speech").after.mean_wait_h == 0
    assert of(found, "vision").before.preemptions == 0
    assert of(found, "vision").after.preemptions == 1
    assert of(found, "vision").after.mean_wait_h == 1  # one of two jobs waits two hours
    assert (found.before.mean_wait_h, found.after.mean_wait_h) == (3, 2 / 3)


def test_added_gpus_lower_wait_and_utilisation() -> None:
    small = side(8, project("vision", 8), project("speech", 0))
    large = replace(small, nodes=side(12).nodes)
    found = replay_both(NIGHT, small, large, Costs(restart_s=0))
    assert (found.before.gpus, found.after.gpus) == (8, 12)
    assert (found.before.mean_wait_h, found.after.mean_wait_h) == (3, 0)
    assert found.before.allocated_utilisation == pytest.approx(88 / (8 * 12))
    assert found.after.allocated_utilisation == pytest.approx(88 / (12 * 10))
    assert of(found, "vision").gpu_h == 80


def test_tree_with_limits_is_replayed_as_configured() -> None:
    flat = side(8, project("vision", 8), project("speech", 0))
    tree = side(
        8,
        project("lab", 8, limit=4),
        project("vision", 4, parent=ProjectName("lab")),
        project("speech", 4, parent=ProjectName("lab")),
    )
    found = replay_both(NIGHT, flat, tree, Costs(restart_s=0))
    assert found.after.makespan_d * 24 == 22  # four at a time: 10 + 2 + 10 hours


def test_equal_sides_match_each_other_and_plain_replay(tmp_path: Path) -> None:
    chance = random.Random(7)
    rows = [
        (chance.randrange(200_000), chance.randrange(60, 40_000), chance.choice([1, 1, 2, 4]), name)
        for name in ("a", "b", "c")
        for _ in range(60)
    ]
    trace, quotas = tmp_path / "trace.csv", tmp_path / "quotas.csv"
    with trace.open("w", newline="") as file:
        csv.writer(file).writerows([("submit_s", "duration_s", "gpus", "project"), *rows])
    quotas.write_text("project,quota\na,2\nb,2\nc,4\n")
    plain, _ = replay(ReplayOptions(trace, nodes=1, gpus_per_node=8, quotas=quotas))
    same = side(8, project("a", 2), project("b", 2), project("c", 4))
    jobs = sorted(
        (TraceJob(i, float(s), float(d), g, p) for i, (s, d, g, p) in enumerate(rows)),
        key=lambda it: it.submit_s,
    )
    found = replay_both(jobs, same, same, Costs())
    figures = [asdict(it) for it in (plain, found.before, found.after)]
    for one in figures:
        for name in REAL_TIME:
            del one[name]
    assert figures[0] == figures[1] == figures[2]
    assert figures[0]["mean_wait_h"] > 0
    assert all(it.before == it.after for it in found.projects)


def test_jobs_impossible_on_one_side_are_excluded_and_counted() -> None:
    here = side(8, project("vision", 8), project("speech", 0))
    gone = side(4, project("vision", 8))
    jobs = [*NIGHT, job(2, 1, 8, "vision")]
    found = replay_both(jobs, here, gone, Costs())
    assert (found.left_out, found.after.jobs) == (2, 2)
    with pytest.raises(InvalidInput, match="None of the 1 recorded jobs"):
        replay_both(NIGHT[2:], here, gone, Costs())


def test_job_larger_than_node_runs_as_equal_workers() -> None:
    large, small = (side(16, project("vision", 16), per_node=n) for n in (16, 4))
    found = replay_both([job(0, 1, 12, "vision")], large, small, Costs())
    assert (found.left_out, found.after.mean_wait_h) == (0, 0)
