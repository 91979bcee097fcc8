"""Hang detection of running jobs: no activity in any measured signal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.core.lifecycle.hangs import USUAL_S, HangRule, Signs, silent_since

times = st.floats(0, 1e6)
signs = st.builds(Signs, times, *(st.none() | times,) * 2, computed=times, gpu=st.none() | times)
RULE = HangRule(60.0)


@given(signs, st.floats(0, 2e6))
def test_job_hangs_when_newest_activity_reaches_threshold(seen: Signs, now: float) -> None:
    since = silent_since(seen, RULE, now)
    activity = (seen.watched, seen.reported, seen.wrote, seen.computed, seen.gpu)
    newest = max(it for it in activity if it is not None)
    assert since == (newest if now - newest >= 60.0 else None)


@given(signs, st.floats(0, 2e6))
def test_hang_is_undecided_without_measured_cpu_time(seen: Signs, now: float) -> None:
    assert silent_since(replace(seen, computed=None), RULE, now) is None


@pytest.mark.parametrize(
    ("site", "asked", "after_s", "act"),
    [
        (HangRule(), None, None, IfHanging.TELL),
        (HangRule(), IfHanging.TELL, USUAL_S, IfHanging.TELL),
        (HangRule(60.0, IfHanging.REQUEUE), None, 60.0, IfHanging.REQUEUE),
        (HangRule(60.0, IfHanging.REQUEUE), IfHanging.TELL, 60.0, IfHanging.TELL),
        (HangRule(60.0, IfHanging.REQUEUE), IfHanging.NOTHING, None, IfHanging.NOTHING),
        (HangRule(60.0, IfHanging.NOTHING), None, None, IfHanging.NOTHING),
        (HangRule(60.0, IfHanging.NOTHING), IfHanging.TELL, 60.0, IfHanging.TELL),
    ],
)
def test_site_and_job_settings_are_combined(
    site: HangRule, asked: IfHanging | None, after_s: float | None, act: IfHanging
) -> None:
    assert site.of_job(asked) == HangRule(after_s, act)
