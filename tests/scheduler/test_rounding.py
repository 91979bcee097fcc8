"""Parts of a whole are rounded so that they add up, each by at most one step."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.use import UseClass, UseRow
from benchpool_scheduler.phrases.parts import rounded_parts
from benchpool_scheduler.web.report_view import classes, whole

AMOUNTS = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=9)


@given(AMOUNTS, st.integers(1, 10_000))
def test_rounded_parts_add_up_within_one_step(amounts: list[float], steps: int) -> None:
    parts = rounded_parts(amounts, steps)
    assert sum(parts) == steps
    for part, amount in zip(parts, amounts, strict=True):
        assert abs(part - steps * amount / math.fsum(amounts)) < 1 + 1e-6


def test_use_classes_of_report_add_up_to_whole() -> None:
    hours = dict.fromkeys(list(UseClass)[:3], 1.115)
    row = UseRow(name=None, gpu_h=hours, held_gpu_h=0.0, preemptions_given=0, preemptions_taken=0)
    rows = classes(row)
    added = sum(float(one.hours) for one in rows)
    assert f"{added:.2f}" == whole(row).hours
    assert sum(int(one.part.removesuffix(" %")) for one in rows) == 100
