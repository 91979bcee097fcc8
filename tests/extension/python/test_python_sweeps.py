"""``benchpool.sweep`` and ``%%train --sweep`` with a real pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

import benchpool
from benchpool import handles, magic
from benchpool.sweeps import SweepHandle
from benchpool_scheduler.contract.sweeps import SweepPreview
from benchpool_scheduler.errors import InvalidInput, NotFound

pytestmark = pytest.mark.slow

TRAIN = """\
import sys
from benchpool import log
log(loss=abs(float(sys.argv[1]) - 0.1), step=1)
"""


class Session:
    """Part of IPython that ``%%train`` uses."""

    def __init__(self, *inputs: str) -> None:
        self.user_ns = {"In": ["", *inputs]}


def test_script_sweep_runs_each_value_and_finds_best(susan: Path) -> None:
    (susan / "train.py").write_text(TRAIN)
    swept = benchpool.sweep("train.py", "{lr}", values={"lr": [0.5, 0.1]}, metric="loss")
    assert swept.wait().facts.text == (
        "2 of 2 trials begun: 2 done. The lowest loss is 0, of trial 1."
    )
    assert swept.best.facts.parameters == {"lr": 0.1}
    assert swept.best.name == "train #1"
    rows = swept.table()
    rows = rows if isinstance(rows, list) else rows.to_dict("records")
    assert [(row["trial"], row["lr"], row["state"]) for row in rows] == [
        (1, 0.1, "done"),
        (0, 0.5, "done"),
    ]
    assert repr(swept) == f"{swept.id[:8]} train: {swept.facts.text}"


def test_dry_run_returns_cost_and_sends_nothing(
    susan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (susan / "train.py").write_text(TRAIN)
    asked: dict[str, Any] = {"values": {"lr": "log:1e-3:1e-1"}, "metric": "loss", "trials": 64}
    before = len(handles.client().sweeps())
    found = benchpool.sweep("train.py", **asked, trial_hours=2, dry_run=True)
    assert repr(found) == (
        "64 trials, about 128.0 GPU-hours; 2 d 16 h if 2 run at a time, limited by your quota of "
        "2 GPUs. Nothing was sent."
    )
    halving: dict[str, Any] = {
        "stop_early": 1,
        "trial_hours": 1,
        "trial_steps": 27,
        "sweep_seed": 1,
    }
    other = benchpool.sweep("train.py", **asked, **halving, dry_run=True).facts
    assert isinstance(other, SweepPreview)
    assert other.gpu_hours == pytest.approx(64 / 9)
    assert isinstance(found.facts, SweepPreview)
    assert other.first != found.facts.first, "another seed draws other values"
    line = "--sweep lr=1,2 --trial-hours 2 --sweep-seed 3 --dry-run"
    assert repr(magic.train(Session("sent"), line, "lr = 0.5")) == (
        "2 trials, about 4.00 GPU-hours; 2 h if 2 run at a time. Nothing was sent."
    )
    of_cell = repr(magic.train(Session("sent"), "--dry-run", "lr = 0.5"))
    assert of_cell.endswith("guaranteed quota. Nothing was sent.")
    assert len(handles.client().sweeps()) == before
    assert capsys.readouterr().err == ""


def test_stopped_sweep_without_metric_has_no_best(susan: Path) -> None:
    (susan / "wait.py").write_text("import time; time.sleep(600)")
    swept = benchpool.sweep("wait.py", values={"seed": "0..4"}, at_once=1, name="waits")
    assert swept.state == "running"
    with pytest.raises(NotFound, match="No trial of waits has both a value"):
        assert swept.best
    assert len(swept.stop().wait().trials) == 1


def test_cell_sweep_includes_needed_session_cells(
    susan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = "from benchpool import log\nlr = 0.5\nlog(loss=abs(lr - target), step=1)"
    session = Session("target = 0.25", "sent")
    line = "--sweep lr=0.25,0.75 --metric loss --name cells --trial-hours 1"
    swept = magic.train(session, line, cell)
    assert isinstance(swept, SweepHandle)
    cost = "2 trials, about 2.00 GPU-hours; 1 h if 2 run at a time.\n"
    assert capsys.readouterr().err == cost, "printed before it is sent"
    assert [row.value for row in swept.wait().trials] == [0.0, 0.5]


def test_notebook_sweep_sets_notebook_parameters(susan: Path) -> None:
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell("rate = 1")]
    nbformat.write(book, susan / "book.ipynb")
    with pytest.raises(InvalidInput, match="its parameters are rate"):
        benchpool.sweep("book.ipynb", values={"lr": [1]})
    swept = benchpool.sweep("book.ipynb", values={"rate": [2, 3]}).wait()
    assert {row.state for row in swept.trials} == {"done"}


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("--trials 3", "--trials requires --sweep NAME=VALUES"),
        ("--sweep lr=", "No values are given for 'lr'"),
        ("--sweep other=1,2", "The notebook has no parameter 'other'"),
    ],
)
def test_invalid_sweep_option_is_reported(
    susan: Path, capsys: pytest.CaptureFixture[str], line: str, refusal: str
) -> None:
    assert magic.train(Session("sent"), line, "lr = 1") is None
    assert refusal in capsys.readouterr().err
