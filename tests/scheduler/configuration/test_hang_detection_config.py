"""Hang detection in ``benchpool.yaml``: its rule, errors, and change descriptions."""

from __future__ import annotations

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.configuration.comparison import compare
from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.core.lifecycle.hangs import HangRule
from benchpool_scheduler.errors import InvalidInput

REQUEUES = "{version: 1, hanging: {after_s: 1800, act: requeue}}"


def test_hang_detection_is_off_by_default() -> None:
    assert load("version: 1").hanging == HangRule(None, IfHanging.TELL)
    assert load(REQUEUES).hanging == HangRule(1800.0, IfHanging.REQUEUE)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{after: 60}", "hanging.after is not a known key; did you mean `after_s`?"),
        ("{after_s: 5}", "hanging.after_s is 5; it must be between 10 and 604800."),
        ("{act: kill}", "hanging.act is 'kill'; write tell, requeue, nothing."),
    ],
)
def test_invalid_value_is_rejected_with_key(text: str, what: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load(f"version: 1\nhanging: {text}")
    assert what in str(refused.value)


def test_change_is_described_in_words() -> None:
    assert compare(load("version: 1"), load(REQUEUES)) == [
        "Hanging jobs: only jobs that request it → after 30 min of silence: requeue."
    ]
