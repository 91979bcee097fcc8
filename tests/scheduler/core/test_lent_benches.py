"""Idle GPUs of benches are lent to preemptible work, and called back (R3, lend_idle)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.benches.line import BenchGpu, Offer, Use, ends_in, seat, seats
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    NodeName,
    Policy,
    Preempt,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.boxes import box, leaving, node, pool_of, project, queued, running
from benchpool_support.examples import examples
from benchpool_support.leaving import gone, under_way
from benchpool_support.plans import at_rest
from benchpool_support.snapshots import busy_snapshots

many = settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
LAB = project("a", 1, weight=1)


def lending(pool: Snapshot, lent: int = 0, called: int = 0) -> Snapshot:
    nodes = (replace(n, kept=called, called=called, lent=lent) for n in pool.nodes)
    return replace(pool, nodes=tuple(nodes))


def started(pool: Snapshot) -> list[str]:
    return [c.job for c in decide(pool).commands if isinstance(c, Start)]


def victims(pool: Snapshot) -> list[tuple[str, str | None, str]]:
    return [(c.job, c.claimant, c.rule) for c in decide(pool).commands if isinstance(c, Preempt)]


def test_lent_gpus_are_used_and_count_as_surplus() -> None:
    pool = lending(box(3, [LAB], [queued("x", "a", 2), queued("y", "a", 1)]), lent=2)
    assert sorted(started(pool)) == ["x", "y"]
    assert decide(pool).shares[LAB.name].fair_share == 3


def test_non_preemptible_job_gets_no_lent_gpus() -> None:
    fixed = queued("x", "a", 2, preemptible=False)
    pool = lending(box(3, [project("a", 3)], [fixed]), lent=2)
    plan = decide(pool)
    assert plan.commands == ()
    assert plan.reasons[fixed.id].code.value == "larger-than-node"
    one = queued("x", "a", 1, preemptible=False)
    assert started(lending(box(3, [project("a", 3)], [one]), lent=2)) == ["x"]


def test_non_preemptible_job_counts_no_lent_gpus_as_free() -> None:
    fixed = queued("x", "a", 1, preemptible=False)
    holder = running("h", "a", 1, preemptible=False)
    pool = lending(box(3, [project("a", 3)], [holder, fixed]), lent=2)
    reason = decide(pool).reasons[fixed.id]
    assert (reason.code.value, reason.numbers["free"]) == ("pool-full", 0)


def test_job_too_large_during_bench_use_waits() -> None:
    big = queued("x", "a", 3)
    pool = lending(box(2, [LAB], [big]), lent=1)
    used = replace(pool, nodes=tuple(replace(n, on_benches=(GpuId("b"),)) for n in pool.nodes))
    assert decide(pool).reasons[big.id].code.value == "larger-than-node"
    assert decide(used).reasons[big.id].code.value == "fair-share-reached"
    firm = queued("x", "a", 2, preemptible=False)
    used = replace(used, projects=(project("a", 3),), jobs=(firm,))
    assert decide(used).reasons[firm.id].code.value == "larger-than-node"


def test_waiting_owner_gets_over_quota_gpu_first() -> None:
    jobs = [running("a1", "a", 1), running("a2", "a", 1), running("b1", "b", 1)]
    pool = lending(box(3, [project("a", 1), project("b", 1)], jobs), called=1)
    assert victims(pool) == [("a2", None, "R3")]


def test_in_quota_work_returns_lent_gpus_as_last_resort() -> None:
    pool = lending(box(2, [project("a", 2)], [running("a1", "a", 2)]), called=1)
    assert victims(pool) == [("a1", None, "R3")]


def test_new_start_on_lent_gpus_is_unprotected_from_owner() -> None:
    policy = Policy(min_runtime_s=3600)
    pool = lending(box(2, [LAB], [running("a1", "a", 2)], policy), called=2)
    assert victims(pool) == [("a1", None, "R3")]


def test_no_further_job_is_preempted_while_one_leaves() -> None:
    jobs = [leaving("a1", "a", 1), running("a2", "a", 1)]
    assert victims(lending(box(2, [LAB], jobs), called=1)) == []


def test_gang_with_worker_on_node_is_preempted_whole() -> None:
    nodes = [node("n1", 2, kept=1, called=1), node("n2", 2)]
    gang = running("g", "a", 2, on="n1", workers=2, min_workers=2)
    gang = replace(gang, held=(gang.held[0], replace(gang.held[1], node=NodeName("n2"))))
    pool = pool_of(nodes, [project("a", 4)], [gang])
    commands = [c for c in decide(pool).commands if isinstance(c, Preempt)]
    assert [len(c.workers) for c in commands] == [2]


def firm_on(pool: Snapshot, name: str) -> int:
    jobs = (j for j in pool.jobs if not j.spec.preemptible)
    return sum(len(w.gpus) for j in jobs for w in j.held if w.node == name)


@st.composite
def lending_pools(draw: st.DrawFn) -> Snapshot:
    """Draw pools whose nodes have lent and called GPUs that non-preemptible work does not hold."""
    pool = draw(busy_snapshots(elastic=True))
    nodes = []
    for one in pool.nodes:
        open_ = max(0, len(one.gpus) - firm_on(pool, one.name))
        aside = draw(st.integers(0, open_))
        called = draw(st.integers(0, aside))
        nodes.append(replace(one, kept=called, called=called, lent=aside - called))
    return replace(pool, nodes=tuple(nodes))


@many
@given(lending_pools())
def test_reclaimed_bench_gpus_are_free_after_victims_left(pool: Snapshot) -> None:
    later = gone(under_way(pool, decide(pool)))
    for one in later.nodes:
        if one.ready:
            held = sum(len(w.gpus) for j in later.jobs for w in j.held if w.node == one.name)
            assert len(one.gpus) - held >= one.called


@many
@given(lending_pools())
def test_non_preemptible_work_never_uses_bench_gpus(pool: Snapshot) -> None:
    later = after(pool, decide(pool))
    for one in later.nodes:
        if one.ready:
            before, now = firm_on(pool, one.name), firm_on(later, one.name)
            assert now <= max(before, len(one.gpus) - one.kept - one.lent)


@settings(max_examples=examples(50), suppress_health_check=list(HealthCheck))
@given(lending_pools())
def test_lending_pool_settles(pool: Snapshot) -> None:
    still = at_rest(pool)
    assert decide(still).commands == ()
    assert all(j.activity is not Activity.TERMINATING for j in still.jobs)


# --------------------------------------------------------------------------- the queue


def offer(*uses: tuple[str, Use]) -> Offer:
    found: dict[NodeName, list[BenchGpu]] = {}
    for i, (name, use) in enumerate(uses):
        found.setdefault(NodeName(name), []).append(BenchGpu(GpuId(f"{name}/{i}"), use))
    return found


@pytest.mark.parametrize(
    ("uses", "chosen"),
    [
        ([("a", Use.OVER_QUOTA), ("b", Use.FREE)], "b"),
        ([("a", Use.WITHIN_QUOTA), ("b", Use.OVER_QUOTA)], "b"),
        ([("a", Use.OVER_QUOTA), ("b", Use.LEAVING)], "b"),
        ([("a", Use.FREE), ("b", Use.FREE)], "a"),
    ],
)
def test_server_is_placed_at_lowest_cost(uses: list[tuple[str, Use]], chosen: str) -> None:
    found = seat(1, offer(*uses))
    assert found is not None
    assert found.node == chosen


def test_later_server_gets_remaining_gpus() -> None:
    both = offer(("a", Use.OVER_QUOTA), ("a", Use.FREE))
    found = seats([("susan", 2, both), ("joe", 1, both)], kept=3)
    assert list(found) == ["susan"]
    assert not found["susan"].ready


def test_large_request_does_not_block_small_request_elsewhere() -> None:
    both = offer(("a", Use.OVER_QUOTA), ("a", Use.FREE), ("b", Use.FREE))
    found = seats([("susan", 2, both), ("joe", 1, both)], kept=3)
    assert found["joe"].node == "b"
    assert found["joe"].ready


@given(
    st.lists(st.integers(1, 3), max_size=5),
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Use)), max_size=9),
)
def test_gpu_is_offered_to_one_server(asked: list[int], uses: list[tuple[str, Use]]) -> None:
    found = seats([(i, n, offer(*uses)) for i, n in enumerate(asked)], kept=4)
    given_out = [gpu.gpu for one in found.values() for gpu in one.gpus]
    assert len(given_out) == len(set(given_out))
    assert all(len(one.gpus) == asked[i] for i, one in found.items())


def test_lease_end_estimate_requires_enough_ended_leases() -> None:
    assert ends_in([60.0], [100.0] * 4, 1) is None
    assert ends_in([60.0], [100.0] * 5, 2) is None
    assert ends_in([1000.0], [100.0] * 5, 1) == (0.0, 60.0, None)


@pytest.mark.parametrize("position", [1, 2, 3])
@pytest.mark.parametrize("spread", [0.3, 1.5])
def test_four_of_five_lease_ends_fall_into_learned_range(position: int, spread: float) -> None:
    draw = random.Random(f"{position} {spread}")

    def held_at(instant: float) -> tuple[float, float]:
        """Lease one GPU repeatedly; return age and remaining time of the lease at this instant."""
        begun = 0.0
        while True:
            length = 3600.0 * draw.lognormvariate(0.0, spread)
            if begun + length > instant:
                return instant - begun, begun + length - instant
            lasted.append(length)
            begun += length

    inside = estimated = 0
    for _ in range(150):
        lasted: list[float] = []
        held = [held_at(360_000.0) for _ in range(4)]
        draw.shuffle(lasted)
        ends = ends_in([age for age, _ in held], lasted[:100], position)
        if ends is None or ends.latest_s is None:
            continue
        left = sorted(rest for _, rest in held)[position - 1]
        estimated += 1
        inside += ends.earliest_s - 1 <= left <= ends.latest_s + 1
    assert estimated >= 50
    assert inside >= 0.8 * estimated
