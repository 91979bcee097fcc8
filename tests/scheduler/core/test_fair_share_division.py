"""Properties of the division into fair shares, for any projects (R4, R5)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.core.fairness.shares import Demand, divide

amounts = st.integers(0, 40)
siblings = st.lists(
    st.builds(
        Demand,
        quota=st.one_of(st.none(), st.integers(0, 12)),
        limit=st.one_of(st.none(), amounts),
        weight=st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]),
        priority=st.integers(0, 2),
        demand=amounts,
    ),
    max_size=6,
)


@given(amounts, siblings)
def test_division_neither_loses_nor_creates_gpus(total: int, parts: list[Demand]) -> None:
    shares, rest = divide(total, parts)
    guaranteed = sum(min(total if c.quota is None else c.quota, c.most) for c in parts)
    assert sum(shares) + rest == max(total, guaranteed)


@given(amounts, siblings)
def test_shares_cover_quota_and_never_exceed_demand(total: int, parts: list[Demand]) -> None:
    shares, _ = divide(total, parts)
    for share, sibling in zip(shares, parts, strict=True):
        quota = total if sibling.quota is None else sibling.quota
        assert min(quota, sibling.most) <= share <= sibling.most


@given(amounts, siblings)
def test_surplus_remains_only_without_weighted_demand(total: int, parts: list[Demand]) -> None:
    shares, rest = divide(total, parts)
    hungry = [c for s, c in zip(shares, parts, strict=True) if c.weight > 0 and s < c.most]
    assert rest == 0 or not hungry


@given(amounts, siblings)
def test_lower_priority_gets_surplus_after_higher_priority(total: int, parts: list[Demand]) -> None:
    shares, _ = divide(total, parts)
    hungry = [c.priority for s, c in zip(shares, parts, strict=True) if c.weight > 0 and s < c.most]
    for share, sibling in zip(shares, parts, strict=True):
        quota = total if sibling.quota is None else sibling.quota
        if share > min(quota, sibling.most):
            assert all(sibling.priority >= priority for priority in hungry)


@given(amounts, siblings, st.data())
def test_larger_weight_never_gets_less(
    total: int, parts: list[Demand], data: st.DataObject
) -> None:
    if not parts:
        return
    i = data.draw(st.integers(0, len(parts) - 1))
    heavier = [*parts]
    heavier[i] = replace(parts[i], weight=parts[i].weight + 1)
    assert divide(total, heavier)[0][i] >= divide(total, parts)[0][i]


@given(st.integers(0, 20), siblings)
def test_scaling_all_weights_changes_nothing(total: int, parts: list[Demand]) -> None:
    scaled = [replace(sibling, weight=sibling.weight * 4) for sibling in parts]
    assert divide(total, scaled) == divide(total, parts)


@given(st.integers(1, 20), st.integers(1, 4))
def test_double_weight_gets_double_surplus_within_one_gpu(total: int, weight: int) -> None:
    one = Demand(quota=0, limit=None, weight=weight, priority=0, demand=100)
    two = replace(one, weight=2 * weight)
    (small, large), rest = divide(total, [one, two])
    assert rest == 0
    assert abs(large - 2 * small) <= 2


@given(amounts, siblings)
def test_project_without_demand_does_not_count(total: int, parts: list[Demand]) -> None:
    idle = Demand(quota=5, limit=None, weight=7.0, priority=2, demand=0)
    shares, rest = divide(total, [*parts, idle])
    assert (shares[:-1], rest) == divide(total, parts)
