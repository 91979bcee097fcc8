"""Every speed shape has its documented result, at a size suitable for tests."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from benchpool_scheduler.core.model import Activity, JobId, Preempt, ReasonCode, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.service.process import interpreter
from benchpool_scheduler.simulation.shapes import run_shape, timing
from benchpool_scheduler.simulation.shapes.builders import SHAPES, Built
from benchpool_scheduler.simulation.shapes.tallies import tally

KEYS = ["shape", "nodes", "jobs", "result", "ms_min", "ms_median", "ms_max", "peak_rss_mib"]

EXPLAINED = {
    ReasonCode.POOL_FULL,
    ReasonCode.PROJECT_LIMIT,
    ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA,
    ReasonCode.FAIR_SHARE_REACHED,
    ReasonCode.VICTIMS_PROTECTED,
    ReasonCode.GANG_INCOMPLETE,
    ReasonCode.FRAGMENTED,
    ReasonCode.LARGER_THAN_NODE,
    ReasonCode.LARGER_THAN_POOL,
    ReasonCode.NO_SUCH_MODEL,
    ReasonCode.NO_NODE_READY,
}


def commands(built: Built, kind: type[Start] | type[Preempt]) -> list[JobId]:
    return [command.job for command in decide(built.snapshot).commands if isinstance(command, kind)]


def test_all_jobs_start_in_empty_pool() -> None:
    built = SHAPES["fill"].build(20)
    assert len({job.project for job in built.snapshot.jobs}) == 20
    assert len(commands(built, Start)) == len(built.snapshot.jobs) == 160


def test_gang_reclaims_exactly_half_of_lent_gpus() -> None:
    built = SHAPES["drain"].build(20)
    assert commands(built, Start) == ["gang"]
    assert len(set(commands(built, Preempt))) == 80


def test_all_gpus_change_owner_in_one_pass() -> None:
    built = SHAPES["swap"].build(12)
    queued = {job.id for job in built.snapshot.jobs if job.activity is Activity.QUEUED}
    assert set(commands(built, Start)) == queued
    assert set(commands(built, Preempt)) == {job.id for job in built.snapshot.jobs} - queued
    assert len(queued) == 96


def test_gang_lacking_one_gpu_preempts_nothing_and_has_reason() -> None:
    built = SHAPES["blocked"].build(20)
    plan = decide(built.snapshot)
    assert plan.commands == ()
    assert list(plan.reasons) == ["gang"]


def test_lower_guest_quota_lets_blocked_gang_preempt() -> None:
    blocked = SHAPES["blocked"].build(20)
    owner, guests = blocked.snapshot.projects
    assert guests.quota == 81
    fewer = replace(blocked.snapshot, projects=(owner, replace(guests, quota=80)))
    assert len(commands(replace(blocked, snapshot=fewer), Preempt)) == 80


@pytest.mark.parametrize("nodes", [8, 64, 130, 600])
def test_gang_of_512_starts_inside_one_preferred_domain(nodes: int) -> None:
    built = SHAPES["gang"].build(nodes)
    (gang,) = built.snapshot.jobs
    assert gang.spec.workers == gang.spec.least_workers == min(512, 8 * nodes)
    (start,) = decide(built.snapshot).commands
    assert isinstance(start, Start)
    assert start.job == gang.id
    labels = {
        node.name: node.labels[gang.spec.preferred_level or ""] for node in built.snapshot.nodes
    }
    assert {labels[worker.node] for worker in start.workers} == {"hall0"}


def test_topology_has_four_zones_of_eight_blocks() -> None:
    nodes = SHAPES["gang"].build(1024).snapshot.nodes
    domains = [len({node.labels[level] for node in nodes}) for level in ("hall", "zone", "block")]
    assert domains == [2, 2 * 4, 2 * 4 * 8]
    assert set(Counter(node.labels["rack"] for node in nodes).values()) == {2}


@pytest.mark.parametrize("nodes", [20, 27])
def test_crowded_pool_starts_nothing_and_explains_every_wait(nodes: int) -> None:
    snapshot = SHAPES["cycle"].build(nodes).snapshot
    queued = {job.id for job in snapshot.jobs if job.activity is Activity.QUEUED}
    assert (len(snapshot.jobs) - len(queued), len(queued)) == (4 * nodes, 10 * nodes)
    plan = decide(snapshot)
    assert plan.commands == ()
    assert set(plan.reasons) == queued


def test_crowded_pool_has_every_reason_and_job_kind() -> None:
    snapshot = SHAPES["cycle"].build(20).snapshot
    found = {reason.code for reason in decide(snapshot).reasons.values()}
    assert found == EXPLAINED
    queued = [job for job in snapshot.jobs if job.activity is Activity.QUEUED]
    assert {job.spec.gpus for job in queued} >= {1, 2, 4, 8}
    assert any(job.spec.workers > 1 for job in queued)
    assert len({job.spec.priority for job in queued}) == 3
    holders = {job.project for job in snapshot.jobs}
    assert len(holders) == 20
    assert all(project.parent for project in snapshot.projects if project.name in holders)


def test_crowded_pool_starts_job_when_another_ends() -> None:
    printed: list[str] = []
    assert run_shape("event", nodes=20, json=True, echo=printed.append) == 0
    result = json.loads(printed[0])["result"]
    assert result.startswith("ok: ")
    assert " 0 preempted" in result


def test_garbage_collection_matches_service() -> None:
    assert timing.COLLECTIONS == interpreter.THRESHOLDS


def test_same_size_gives_same_pool() -> None:
    assert SHAPES["cycle"].build(21).snapshot == SHAPES["cycle"].build(21).snapshot


@pytest.mark.parametrize("shape", SHAPES)
def test_row_has_exact_keys_and_expected_result(shape: str) -> None:
    printed: list[str] = []
    assert run_shape(shape, nodes=20, json=True, echo=printed.append) == 0
    (row,) = map(json.loads, printed)
    assert list(row) == KEYS
    assert (row["shape"], row["nodes"]) == (shape, 20)
    assert row["result"].startswith("ok: ")
    assert 0 < row["ms_min"] <= row["ms_median"] <= row["ms_max"]
    assert 1 < row["peak_rss_mib"] < 1000


def test_table_columns_match_json_keys() -> None:
    printed: list[str] = []
    run_shape("fill", nodes=3, echo=printed.append)
    heading, row = printed
    assert heading.split() == KEYS
    assert row.split()[:3] == ["fill", "3", "24"]


def test_invalid_size_is_rejected_with_minimum() -> None:
    with pytest.raises(InvalidInput, match=r"--nodes is 3; this shape needs at least 20\."):
        run_shape("cycle", nodes=3)


def test_unexpected_plan_is_failure() -> None:
    built, larger = SHAPES["drain"].build(20), SHAPES["drain"].build(22)
    found = tally(built.snapshot, decide(built.snapshot))
    assert timing.result_of(built, [found]) == "ok: 1 started, 80 preempted, 0 waiting"
    assert timing.result_of(larger, [found]) == (
        "FAIL: 1 started, 80 preempted, 0 waiting; expected 1 started, 88 preempted, 0 waiting"
    )
