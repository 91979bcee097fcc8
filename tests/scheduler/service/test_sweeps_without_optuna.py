"""Sweeps of a scheduler without Optuna: grid and random work, and tpe is refused when sent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import benchpool_support
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.sweeps import (
    ListedValues,
    SweepMethod,
    SweepPlan,
    SweepRequest,
)
from benchpool_scheduler.runtime import EndedBy
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import SUSAN, make_pool, opened
from benchpool_support.scripted import ScriptedRuntime, devices
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.slow

REFUSAL = (
    "The method tpe needs Optuna, which is not installed with the scheduler. Use the method "
    "random, or install it there: `pip install 'benchpool[sweeps]'`."
)

SERVICE = """
import json, pathlib, sys

class NoOptuna:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "optuna":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoOptuna())

from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.sweeps import ListedValues, SweepMethod, SweepPlan, SweepRequest
from benchpool_scheduler.errors import BenchpoolError
from benchpool_support.serving import served
from benchpool_support.waiting import until

answers = {}
with served(pathlib.Path(sys.argv[1])) as running, running.client("susan") as client:
    for method in SweepMethod:
        plan = SweepPlan({"seed": ListedValues([1, 2])}, method=method, metric="loss", trials=2)
        asked = SweepRequest(JobSubmission(entry=CommandEntry(["true"]), name=method), plan)
        try:
            client.preview_sweep(asked)
            sweep = client.begin_sweep(asked)
        except BenchpoolError as refused:
            answers[method] = [refused.code, refused.field, refused.message]
            continue
        over = until(lambda: client.sweep(sweep.id), holds=lambda found: found.state == "over")
        answers[method] = [row.state for row in over.trials]
    answers["sweeps"] = sorted(one.name for one in client.sweeps())
print(json.dumps(answers))
"""


def test_grid_and_random_work_without_optuna_and_tpe_is_refused_when_sent(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SERVICE, str(tmp_path / "state")]
    support = Path(benchpool_support.__file__).parents[1]
    ended = subprocess.run(
        words,
        env={**os.environ, "PYTHONPATH": str(support)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {
        "grid": ["done", "done"],
        "random": ["done", "done"],
        "tpe": ["extra-missing", "method", REFUSAL],
        "sweeps": ["grid", "random"],
    }


async def test_running_sweep_reports_missing_optuna(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, clock = ScriptedRuntime(devices(9)), FakeClock()
    plan = SweepPlan(
        {"seed": ListedValues([1, 2])}, method=SweepMethod.TPE, metric="loss", trials=2,
        max_concurrent=1,
    )  # fmt: skip
    asked = SweepRequest(JobSubmission(entry=CommandEntry(["true"])), plan)
    async with opened(make_pool(tmp_path, runtime=runtime, clock=clock)) as pool:
        sweep = await pool.sweeps.begin(SUSAN, asked)
        (worker,) = await runtime.until_launched(1)
        monkeypatch.setitem(sys.modules, "optuna", None)
        runtime.end(worker, 0, EndedBy.ITSELF, at=clock.now())
        found = await until_async(
            lambda: pool.sweeps.show(SUSAN, sweep.id),
            "the sweep has a problem",
            holds=lambda found: found.problem,
        )
        assert found.problem == REFUSAL
