"""Fair shares of projects, compared with shares computed a second time (R4-R7)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.core.fairness.shares import Demand, divide
from benchpool_scheduler.core.model import Activity, Project, ProjectName, Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_support.examples import examples
from benchpool_support.reference import shares as reference
from benchpool_support.reference.holdings import GPUS, children
from benchpool_support.snapshots import busy_snapshots
from benchpool_support.wide_snapshots import PLAIN, Breadth, wide_snapshots

with_a_past = wide_snapshots(replace(PLAIN, past=True), running=10)
pools = st.one_of(wide_snapshots(Breadth(past=False)), busy_snapshots(elastic=True))
many = settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
amounts = st.integers(0, 40)
siblings = st.lists(
    st.builds(
        Demand,
        quota=st.one_of(st.none(), st.integers(0, 12)),
        limit=st.one_of(st.none(), amounts),
        weight=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 7.0]),
        priority=st.integers(0, 2),
        demand=amounts,
    ),
    max_size=6,
)


def fair_shares(pool: Snapshot) -> dict[str, int]:
    return {name: share.fair_share for name, share in decide(pool).shares.items()}


@settings(max_examples=examples(500))
@given(amounts, siblings)
def test_surplus_division_equals_water_filling(total: int, parts: list[Demand]) -> None:
    """R4, R5: quota first, then equal height for equal weight, bucket by bucket."""
    vessels = [reference.Vessel(c.quota, c.most, Fraction(c.weight), c.priority) for c in parts]
    assert divide(total, parts)[0] == reference.whole_slices(total, vessels)


@many
@given(st.one_of(wide_snapshots(Breadth(past=False)), busy_snapshots(elastic=True)))
def test_every_project_gets_share_required_by_rules(pool: Snapshot) -> None:
    """R4-R7, level by level, with demand, limits, benches and past use."""
    expected = {name: int(share[GPUS]) for name, share in reference.fair_shares(pool).of.items()}
    assert fair_shares(pool) == expected


@settings(max_examples=examples(500), suppress_health_check=list(HealthCheck))
@given(pools)
def test_guarantees_match_reference(pool: Snapshot) -> None:
    """R5a: a quota, and a part of the guarantee of the parent."""
    shares = decide(pool).shares.items()
    expected = {name: three[GPUS] for name, three in reference.guarantees(pool).items()}
    assert {name: share.guaranteed for name, share in shares} == expected


@many
@given(pools)
def test_shares_sum_up_on_every_level(pool: Snapshot) -> None:
    """R4, R5: children's shares add up to the parent's, or to what their guarantees demand."""
    shares, asked = fair_shares(pool), reference.demands(pool)
    total = sum(max(0, len(n.gpus) - n.kept) for n in pool.nodes if n.ready)
    for parent in [None, *(project.name for project in pool.projects)]:
        siblings = children(pool, parent)
        if not siblings:
            continue
        whole = total if parent is None else shares[parent]
        given_out = sum(shares[project.name] for project in siblings)
        most = {p.name: _most(p, int(asked[p.name][GPUS])) for p in siblings}
        firm = sum(min(whole if p.quota is None else p.quota, most[p.name]) for p in siblings)
        assert given_out <= max(whole, firm)
        if all(_weighs(project) for project in siblings):
            assert given_out >= min(whole, sum(most.values()))


def _most(project: Project, asked: int) -> int:
    return asked if project.limit is None else min(asked, project.limit)


def _weighs(project: Project) -> bool:
    return (project.quota != 0 if project.weight is None else project.weight > 0) and (
        project.used_gpu_s == 0
    )


@many
@given(wide_snapshots(), st.data())
def test_larger_weight_never_lowers_share(pool: Snapshot, data: st.DataObject) -> None:
    """R5, R5a. The weights are explicit, because the defaults of the two divisions differ."""
    index = data.draw(st.integers(0, len(pool.projects) - 1))
    project = pool.projects[index]
    fixed = [replace(p, weight=1.0 if p.weight is None else p.weight) for p in pool.projects]
    policy = replace(pool.policy, usage_weight=0.0)
    pool = replace(pool, policy=policy, projects=tuple(fixed))
    more = data.draw(st.sampled_from([0.5, 1.0, 5.0]))
    fixed[index] = replace(fixed[index], weight=(fixed[index].weight or 0.0) + more)
    again = replace(pool, projects=tuple(fixed))
    assert fair_shares(again)[project.name] >= fair_shares(pool)[project.name]


@many
@given(wide_snapshots(Breadth(past=False, firm=False)), st.data())
def test_larger_quota_never_lowers_share(pool: Snapshot, data: st.DataObject) -> None:
    """R4. The weight is explicit, because the default would follow the quota."""
    index = data.draw(st.integers(0, len(pool.projects) - 1))
    project = pool.projects[index]
    fixed = [replace(p, weight=1.0 if p.weight is None else p.weight) for p in pool.projects]
    fixed[index] = replace(fixed[index], quota=project.quota or 0)
    before = replace(pool, projects=tuple(fixed))
    fixed[index] = replace(fixed[index], quota=(project.quota or 0) + 1)
    after = replace(pool, projects=tuple(fixed))
    assert fair_shares(after)[project.name] >= fair_shares(before)[project.name]


idle_projects = st.builds(
    Project,
    name=st.just(ProjectName("idle")),
    quota=st.sampled_from([0, 3, None]),
    limit=st.sampled_from([None, 2]),
    weight=st.sampled_from([None, 0.0, 5.0]),
    priority=st.sampled_from([0, 7]),
    used_gpu_s=st.sampled_from([0.0, 1000.0]),
)


@many
@given(pools, idle_projects, st.data())
def test_project_without_requests_changes_no_share(
    pool: Snapshot, idle: Project, data: st.DataObject
) -> None:
    """R6: neither shares nor commands nor reasons change, for any place in the tree.

    Below another project the idle project has no quota, which would not pass to its siblings (R5a).
    """
    used = {job.project for job in pool.jobs}
    parents = [None, *(p.name for p in pool.projects if p.name not in used)]
    parent = data.draw(st.sampled_from(parents))
    quota = idle.quota if parent is None else 0
    wider = replace(pool, projects=(*pool.projects, replace(idle, parent=parent, quota=quota)))
    before, now = decide(pool), decide(wider)
    assert now.commands == before.commands
    assert {k: v for k, v in now.shares.items() if k != "idle"} == before.shares
    assert {k: r.code for k, r in now.reasons.items()} == {
        k: r.code for k, r in before.reasons.items()
    }


def test_held_work_counts_as_demand() -> None:
    """R6: running work is part of the demand."""
    from benchpool_support.boxes import box, project, running

    pool = box(4, [project("a", 1, weight=1), project("b", 1, weight=1)], [running("r", "a", 3)])
    assert pool.jobs[0].activity is Activity.RUNNING
    assert fair_shares(pool) == {"a": 3, "b": 0}


@settings(max_examples=examples(500), suppress_health_check=list(HealthCheck))
@given(with_a_past)
def test_past_use_is_compared_between_requesting_projects(pool: Snapshot) -> None:
    """R6, R7."""
    expected = {name: int(share[GPUS]) for name, share in reference.fair_shares(pool).of.items()}
    assert fair_shares(pool) == expected
