"""Findings of duplicate runs from the record of worker pods, without a cluster."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from benchpool_cluster.placements import Life, attempts, doubled


def life(pod: str, begun: int, over: int | None = None, **more: Any) -> Life:
    about: dict[str, Any] = {"job": "j", "attempt": 1, "worker": 0, "node": "n"} | more
    return Life(pod=pod, begun=begun, over=over, **about)


WELL = {"phase": "Succeeded"}

ONCE: dict[str, list[Life]] = {
    "one pod": [life("p", 1)],
    "a gang": [life("p", 1), life("q", 2, worker=1)],
    "two jobs": [life("p", 1), life("q", 2, job="k")],
    "an attempt after the other": [life("p", 1, 2), life("q", 3, attempt=2)],
    "told of in another order": [life("q", 3, attempt=2), life("p", 1, 2)],
    "a gang that was paused when one worker had ended": [
        life("p", 1, 3, **WELL),
        life("q", 2, 4, worker=1),
        life("r", 5, 7, attempt=2, **WELL),
        life("s", 6, 8, attempt=2, worker=1, **WELL),
    ],
    "workers that ended well": [life("p", 1, 3, **WELL), life("q", 2, 4, worker=1, **WELL)],
}
TWICE: dict[str, list[Life]] = {
    "two pods of a worker at once": [life("p", 1, 3), life("q", 2)],
    "two attempts at once": [life("p", 1, 3), life("q", 2, attempt=2, worker=1)],
    "two pods without an end": [life("p", 1), life("q", 2)],
}


@pytest.mark.parametrize("case", ONCE)
def test_single_run_is_not_reported_as_duplicate(case: str) -> None:
    assert doubled(ONCE[case]) == []


@pytest.mark.parametrize("case", TWICE)
def test_duplicate_run_is_reported_with_both_pods(case: str) -> None:
    (text,) = doubled(TWICE[case])
    assert "p (attempt 1, worker 0, on n)" in text
    assert "q (attempt" in text


def test_two_successful_attempts_are_reported() -> None:
    found = doubled([life("p", 1, 2, **WELL), life("q", 3, 4, attempt=2, **WELL)])
    assert found == ["job j: the attempts [1, 2] all ended well"]


def test_attempt_with_unstarted_worker_is_not_successful() -> None:
    lives = [life("p", 1, 2, **WELL), life("q", 3, 4, attempt=2, **WELL)]
    lives.append(life("r", 3, 4, attempt=2, worker=1, **WELL))
    assert doubled(lives, {"j": 2}) == []
    assert doubled(lives, {"j": 1}) != []


def test_attempts_are_counted_per_job() -> None:
    lives = [life("p", 1), life("q", 2, worker=1), life("r", 5, attempt=2), life("s", 6, job="k")]
    assert attempts(lives) == Counter({"j": 2, "k": 1})
