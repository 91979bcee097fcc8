"""Waits that end when nothing moves any more, however slow the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import psutil

T = TypeVar("T")

PATIENCE_S = 300.0
POLL_S = 0.2
IN_ALL = 10
"""A wait takes at most so many times its patience, also while something moves."""


def until(
    holds: Callable[[], T],
    what: str,
    seconds: float = PATIENCE_S,
    progress: Callable[[], object] = lambda: None,
) -> T:
    """Wait until something holds and return it.

    Args:
        seconds: How long nothing may change of what ``progress`` returns.
    """
    began = moved = time.monotonic()
    before = progress()
    while not (found := holds()):
        time.sleep(POLL_S)
        now, after = time.monotonic(), progress()
        if after != before:
            before, moved = after, now
        assert now < moved + seconds, f"nothing moved for {seconds:g} s: {what}"
        assert now < began + IN_ALL * seconds, f"not within {IN_ALL * seconds:g} s: {what}"
    return found


def processor_seconds(processes: Iterable[psutil.Process]) -> dict[int, float]:
    """Return, by process, the seconds of processor time that it has had."""
    spent: dict[int, float] = {}
    for one in processes:
        with suppress(psutil.Error):
            spent[one.pid] = sum(one.cpu_times()[:2])
    return spent


def family(pid: int) -> list[psutil.Process]:
    """Return a process with all below it; nothing when it is gone."""
    with suppress(psutil.Error):
        one = psutil.Process(pid)
        return [one, *one.children(recursive=True)]
    return []
