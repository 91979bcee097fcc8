"""``benchpool peek``: what the workers of a running job are doing, from real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_support.waiting import until

from .conftest import Benchpool

pytestmark = pytest.mark.slow

RANKS = """\
import os, time

def load():
    time.sleep(1000)

def all_reduce():
    time.sleep(1000)

print("step 1 of rank", os.environ["RANK"], flush=True)
load() if os.environ["RANK"] == "1" else all_reduce()
"""


def test_peek_shows_stacks_of_two_ranks_and_last_lines(benchpool: Benchpool, folder: Path) -> None:
    (folder / "ranks.py").write_text(RANKS)
    id_ = benchpool("submit", "--json", "--workers", "2", "--gpus", "1", "ranks.py").json["id"]

    def shown() -> str:
        return str(benchpool("peek", id_).out)

    text = until(shown, holds=lambda it: "load (" in it and "all_reduce (" in it)
    lines = text.splitlines()
    assert lines[0].startswith("2 workers, 2 different stacks. Attempt 1, ")
    assert lines.index("worker 0:") < lines.index("worker 1:")
    first, second = text.split("worker 1:")
    assert ("all_reduce (ranks.py:7)" in first, "load (ranks.py:4)" in second) == (True, True)
    assert lines[-2:] == ["Last lines of worker 0:", "  step 1 of rank 0"]
    assert benchpool("peek", id_, "--json").json["groups"][1]["who"] == "worker 1"
    assert "no job" in benchpool("peek", id_, by="joe").err
    assert "No hang of job" in benchpool("peek", "--hanging", id_).err
    benchpool("cancel", id_)
    ended = until(lambda: benchpool("peek", id_), holds=lambda it: "is cancelled" in it.err)
    assert "is cancelled: only a running job has stacks. See its log." in ended.err
