"""Attempts of a program with ``checkpoint.loop`` in this process, paused or killed at given turns.

The programs train a small model with random numbers, so that one number drawn twice or omitted
changes all later results.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchpool.checkpoint import commit_manifest, loop_order, notices, reports, votes


class Model:
    """Object with a state, like a model or an optimizer."""

    def __init__(self) -> None:
        self.weight = 1.0
        self.seen: dict[int, float] = {}

    def learn(self, item: int, noise: float) -> float:
        """Change the weight by an item and a random number, and return it."""
        self.weight = (self.weight * 0.9 + noise * (item + 1)) % 97
        self.seen[item] = self.weight
        return self.weight

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""
        return {"weight": self.weight, "seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state."""
        self.weight, self.seen = state["weight"], dict(state["seen"])


class Killed(BaseException):
    """End of the process by a kill."""


class Attempt:
    """One run of a program, paused or killed at given turns."""

    def __init__(self, folder: Path, ends: dict[str, int] | None = None) -> None:
        self._notice = folder / "notice"
        self._notice.unlink(missing_ok=True)
        self._ends, self.turns = ends or {}, itertools.count(1)

    def turn(self) -> None:
        """Count a turn, and request a pause or end the program if it is one of the given turns.

        Raises:
            Killed: The program is killed at this turn.
        """
        at = next(self.turns)
        if at == self._ends.get("pause"):
            self._notice.write_text("{}")
        if at == self._ends.get("kill"):
            raise Killed


Code = Callable[[Attempt, list[Any]], object]
"""Program of an attempt; the list is for its own records."""
Clock = Callable[[], float]


def run(
    code: Code,
    folder: Path,
    attempt: Attempt,
    environment: pytest.MonkeyPatch,
    clock: Clock = time.monotonic,
) -> object:
    """Run one attempt as a process of its own would: nothing is left of the one before.

    Args:
        clock: Clock of the interval between saves, in seconds.
    """
    environment.setenv("BENCHPOOL_NOTICE_FILE", str(folder / "notice"))
    environment.setenv("BENCHPOOL_CHECKPOINT_DIR", str(folder / "saved"))
    environment.setattr(loop_order, "program", loop_order.LoopOrder(clock))
    environment.setattr(votes, "stopping", False)
    environment.setattr(reports, "by_program", False)
    environment.setattr(reports, "_followed", 0.0)
    environment.setattr(reports, "_last_text", "")
    notices.signalled.clear()
    random.seed(11)
    try:
        return code(attempt, [])
    finally:
        # A save in progress at a kill may be complete or absent. Here it is complete.
        if loop_order.program.saves is not None:
            loop_order.program.saves.finish()


def result_after(code: Code, ends: list[tuple[str, int]]) -> tuple[object, list[str]]:
    """Run a program to its end through these pauses and kills, at turns of each attempt."""
    came: list[str] = []
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as environment:
        environment.setattr(commit_manifest, "flush", lambda path: None)  # no power failure here
        folder = Path(name)
        for how, turn in ends:
            try:
                return run(code, folder, Attempt(folder, {how: turn}), environment), came
            except (SystemExit, Killed) as end:
                came.append(f"{how} {end}")
        return run(code, folder, Attempt(folder), environment), came
