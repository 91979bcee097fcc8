"""Samples in any order have the same sums at every level."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.telemetry import GpuSample, HeldSample
from benchpool_scheduler.telemetry.rollup import ADDED, MS, Sums, coarser, parts, rolled
from benchpool_support.measured import held_samples, samples


@given(samples, st.sampled_from([10, 60, 3600]))
def test_parts_of_sample_add_up_to_sample(sample: GpuSample, step_s: int) -> None:
    cut = list(parts(sample, step_s))
    whole = next(parts(sample, 2**40))[1]
    added = sum((sums for _, sums in cut), Sums())
    assert added == whole
    begins = [begin for begin, _ in cut]
    assert begins == sorted(set(begins))


@given(held_samples)
def test_minutes_and_samples_sum_to_same_hours(held: list[HeldSample]) -> None:
    assert coarser(rolled(held, 60), 3600) == rolled(held, 3600)


@given(held_samples, st.sampled_from([10, 60, 3600]))
def test_sums_lose_and_invent_nothing(held: list[HeldSample], step_s: int) -> None:
    sums = sum(rolled(held, step_s).values(), Sums())
    whole = sum(rolled(held, 2**40).values(), Sums())
    assert [getattr(sums, it) for it in ADDED] == [getattr(whole, it) for it in ADDED]
    assert sums.active_ms <= sums.covered_ms
    measured = [it.sample for it in held if it.sample.activity is not None]
    spans = [round(it.at * MS) - round((it.at - it.span_s) * MS) for it in measured]
    assert sums.covered_ms == sum(spans)


@given(held_samples, st.randoms())
def test_order_of_samples_does_not_matter(held: list[HeldSample], random: Random) -> None:
    mixed = list(held)
    random.shuffle(mixed)
    assert rolled(mixed, 60) == rolled(held, 60)


@given(held_samples)
def test_active_time_never_exceeds_covered_time(held: list[HeldSample]) -> None:
    for sums in rolled(held, 60).values():
        assert 0 <= sums.active_ms <= sums.covered_ms
