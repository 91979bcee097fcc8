"""Budgets of GPU-hours in virtual time: exact counts, and their effect on estimated starts."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from benchpool_scheduler.core.cluster.budgets_in_time import HourOutlook
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget, MonthUse
from benchpool_scheduler.core.fairness.hour_meter import HourMeter
from benchpool_scheduler.core.fairness.hour_standing import AccountKey, HourBudgets, HourStanding
from benchpool_scheduler.core.forecast.forecast import forecast
from benchpool_scheduler.core.forecast.run_times import Expectation
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)

HOUR_S, MONTH_S = 3600.0, 1000 * 3600.0
ABOVE = ProjectName("research")
A, B = ProjectName("a"), ProjectName("b")


def month_of(at_s: float) -> tuple[float, float]:
    begin_s = math.floor(at_s / MONTH_S) * MONTH_S
    return begin_s, begin_s + MONTH_S


def budgets(**projects: HourBudget) -> HourBudgets:
    names = ("research", "a", "b")
    return HourBudgets(
        projects={name: projects.get(name, HourBudget()) for name in names},
        parents={"research": None, "a": "research", "b": "research"},
        weights=dict.fromkeys(names),
        users={},
        usual=projects.get("each", HourBudget()),
        month_of=month_of,
    )


@given(
    steps=st.lists(
        st.tuples(st.floats(0.001, 300 * HOUR_S), st.integers(-4, 4)), min_size=1, max_size=12
    ),
    soft=st.floats(1, 500),
    more=st.floats(0, 500),
)
@example(steps=[(7501.0, 1)], soft=1.25, more=0.0)
def test_budget_state_changes_exactly_at_predicted_time(
    steps: list[tuple[float, int]], soft: float, more: float
) -> None:
    meter = HourMeter(budgets(a=HourBudget(soft, soft + more)), 0.0)
    now_s, held = 0.0, 0
    for lasts_s, change in steps:
        change = max(change, -held)
        held += change
        meter.hold("a", "susan", change, now_s)
        until_s = now_s + lasts_s
        while (next_s := meter.next_change_s(now_s)) < until_s:
            assert next_s > now_s
            before = bounds(meter.standing(now_s))
            assert bounds(meter.standing(next_s - 0.002)) == before or next_s - 0.002 <= now_s
            now_s = next_s
        now_s = until_s


def bounds(standing: HourStanding) -> object:
    """Return the bounds that decisions depend on, without the warning before a bound."""
    return standing.exhausted, standing.weights, standing.behind


@given(st.floats(0, 2), st.floats(0, 900), st.integers(1, 8))
def test_new_month_starts_with_held_gpus(month: float, used_h: float, gpus: int) -> None:
    over = HourMeter(
        budgets(a=HourBudget(hard=1000)), 0.0, {("project", "a"): MonthUse(int(used_h * 3.6e6))}
    )
    over.hold("a", None, gpus, 900 * HOUR_S)
    at_s = (1 + month) * MONTH_S + HOUR_S
    standing = over.standing(at_s)
    since_h = (at_s - month_of(at_s)[0]) / HOUR_S
    assert (("project", "a") in standing.exhausted) == (gpus * since_h >= 1000)


def job(name: str, project: ProjectName, *, held: str = "", begun: bool = False) -> JobFacts:
    workers = (Worker(NodeName("box"), (GpuId(held),)),) if held else ()
    activity = Activity.RUNNING if held else Activity.QUEUED
    return JobFacts(
        JobId(name), project, user="susan", activity=activity, held=workers,
        begun=begun or bool(held),
    )  # fmt: skip


def pool(*jobs: JobFacts, gpus: int = 1, now_s: float = 0.0) -> Snapshot:
    node = Node(NodeName("box"), tuple(GpuId(f"g{n}") for n in range(gpus)))
    projects = (Project(ABOVE, quota=gpus), Project(A, parent=ABOVE), Project(B, parent=ABOVE))
    return Snapshot((node,), projects, jobs, Policy(long_run_s=0), now_s=now_s)


def starts(snapshot: Snapshot, outlook: HourOutlook | None) -> dict[str, float | None]:
    ten_s = 10 * HOUR_S
    known = {it.id: Expectation(ten_s, ten_s, ten_s) for it in snapshot.jobs}
    found = forecast(snapshot, known, hours=outlook)
    return {str(name): it.likely_s for name, it in found.items()}


def test_job_over_budget_starts_in_next_month() -> None:
    now_s = 300 * HOUR_S
    snapshot = pool(job("new", A), job("resumed", A, begun=True), gpus=2, now_s=now_s)
    used: dict[AccountKey, MonthUse] = {("project", "a"): MonthUse(over_ms=int(50 * 3.6e6))}
    outlook = HourOutlook(budgets(a=HourBudget(hard=50)), used)
    assert starts(snapshot, outlook) == {"resumed": 0.0, "new": MONTH_S - now_s}
    assert starts(snapshot, None) == {"resumed": 0.0, "new": 0.0}


def test_running_work_uses_budget_of_later_start() -> None:
    now_s = 400 * HOUR_S
    runs = replace(job("runs", A, held="g0"), as_of_s=now_s)
    snapshot = pool(runs, job("next", A), job("other", B), now_s=now_s)
    use = MonthUse(gpus=1, begun_ms=round(now_s * 1000))
    used: dict[AccountKey, MonthUse] = {("project", "research"): use}
    outlook = HourOutlook(budgets(research=HourBudget(hard=10)), used)
    # In the new month the first job uses the whole budget again.
    assert starts(snapshot, outlook) == {"next": MONTH_S - now_s}
    free = starts(snapshot, HourOutlook(budgets(research=HourBudget(hard=10.1)), used))
    assert free["next"] == 10 * HOUR_S


def test_weights_fall_with_use_and_recover_next_month() -> None:
    standing = HourMeter(
        budgets(a=HourBudget(soft=5)), 0.0, {("project", "a"): MonthUse(int(10 * 3.6e6), gpus=1)}
    )
    assert standing.standing(0.0).weights == {"a": 0.5}
    assert standing.standing(10 * HOUR_S).weights == {"a": 0.25}
    assert standing.standing(MONTH_S).weights == {}
