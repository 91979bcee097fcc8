"""``benchpool submit --sweep``, ``sweep``, ``sweeps`` and ``stop-sweep``, with real jobs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbformat import v4, writes

from benchpool_support.waiting import until

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

TRAIN = """\
import sys
from benchpool import log
rate = float(dict(word.lstrip("-").split("=") for word in sys.argv[1:])["lr"])
for step in range(3):
    log(loss=abs(rate - 0.1), step=step)
"""

LOGGED = """\
from benchpool import log
log(loss=rate, step=1)
"""


@pytest.fixture
def train(folder: Path) -> Path:
    (folder / "train.py").write_text(TRAIN)
    return folder / "train.py"


def sweep(benchpool: Benchpool, id_: str) -> dict[str, Any]:
    return dict(json.loads(benchpool("sweep", id_, "--json").out))


def test_sweep_is_sent_followed_and_shown_best_first(
    benchpool: Benchpool, train: Path, folder: Path
) -> None:
    asked = ("--sweep", "lr=1.0, 0.1, 0.5", "--metric", "loss", "--at-once", "2")
    result = benchpool("submit", *asked, "--trial-hours", "2", "train.py")
    assert result.status == 0, result.err
    first, more = result.out.splitlines()
    assert "3 trials, about 6.00 GPU-hours; 4 h if 2 run at a time.\n" in result.err
    id_ = first.split()[0]
    assert more == f"Look at it: benchpool sweep {id_}; stop it: benchpool stop-sweep {id_}"
    over = until(
        lambda: (now := sweep(benchpool, id_))["state"] == "over" and now,
        "the sweep is over",
        progress=lambda: len(benchpool("jobs", "--json").out),
    )
    assert over["text"] == "3 of 3 trials begun: 3 done. The lowest loss is 0, of trial 1."
    assert [row["parameters"] for row in over["trials"]] == [{"lr": 0.1}, {"lr": 0.5}, {"lr": 1.0}]
    shown = benchpool("sweep", id_).out.splitlines()
    assert [line.split()[0] for line in shown if line.split()[:1] in (["1"], ["2"], ["0"])] == [
        "1",
        "2",
        "0",
    ]
    assert id_ in benchpool("sweeps").out
    compared = benchpool("compare", "--sweep", id_, "--json").json
    assert [row["name"] for row in compared["parameters"]] == ["lr"], "told once, not as --lr too"
    assert compared["parameters"][0]["values"] == ["0.1", "0.5", "1.0"]
    assert [cell["is_best"] for cell in compared["metrics"][0]["cells"]] == [True, False, False]
    assert "3 of 3 trials begun: 3 done." in benchpool("stop-sweep", id_).out


def test_dry_run_shows_cost_and_first_values_and_sends_nothing(
    benchpool: Benchpool, train: Path
) -> None:
    words = ("submit", "--dry-run", "--sweep", "lr=log:1e-3:1e-1", "--metric", "loss")
    length = ("--trials", "64", "--stop-early", "1", "--trial-hours", "1", "--trial-steps", "27")
    cost, *first, last = benchpool(*words, *length, "train.py").out.splitlines()
    assert cost == (
        "64 trials, about 7.11 GPU-hours with early stopping, 64.0 without; "
        "3 h 33 min if 2 run at a time, limited by your quota of 2 GPUs."
    )
    assert [line.partition("=")[0] for line in first] == [f"trial {it}: lr" for it in range(5)]
    assert last == "Preview only: nothing was sent."
    again = benchpool(*words, *length, "train.py").out.splitlines()
    other = benchpool(*words, *length, "--sweep-seed", "1", "train.py").out.splitlines()
    assert again == [cost, *first, last]
    assert not set(other) & set(first), "another seed draws other values"
    shown = benchpool(*words, *length, "train.py", "--json")
    assert shown.status == 0
    assert benchpool("submit", "--dry-run", "train.py").out.splitlines() == [
        "Starts now; 1 GPU within the guaranteed quota.",
        last,
    ]
    times = benchpool("submit", "--dry-run", "--every", "night at 2", "train.py")
    assert times.out.splitlines()[-1] == last, times.err
    for sent in ("jobs", "sweeps", "schedules"):
        assert json.loads(benchpool(sent, "--json").out) == []


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("--sweep-seed", "3"), "--sweep-seed needs --sweep NAME=VALUES."),
        (("--trials", "3"), "--trials needs --sweep NAME=VALUES."),
        (("--sweep", "lr"), "--sweep lr is not NAME=VALUES"),
        (("--sweep", "lr=1..0"), "The range of 'lr' goes from 1 to 0"),
        (("--sweep", "lr=1,2", "--metric", "speed"), "Add minimize or maximize"),
        (("--sweep", "lr=1,2", "--wait"), "`benchpool sweep ID` shows it"),
        (("--sweep", "lr=lin:0:1"), "needs a number of trials"),
        (("--array", "0-3", "--sweep", "lr=1,2"), "--sweep cannot be combined with --array"),
        (("--array", "0-3", "--wait"), "`benchpool sweep ID` shows it"),
        (("--array", "3-0"), "--array 3-0: 3-0 must go from a smaller number"),
        (("--array", "all"), "--array all names no tasks. Write 0-31, 1,3,7"),
        (("--array", "0-31%0"), "number of concurrent tasks after %"),
        (("--array", "0-5000"), "names 5001 tasks; the limit is 1000"),
        (("--sweep", "lr=1,2", "--stop-early", "soon"), "is not STEP or STEP:FACTOR"),
    ],
)
def test_invalid_sweep_is_rejected_before_upload(
    benchpool: Benchpool, train: Path, words: tuple[str, ...], refusal: str
) -> None:
    result = benchpool("submit", *words, "train.py")
    assert result.status == 2
    assert refusal in result.err
    assert json.loads(benchpool("jobs", "--json").out) == []


def test_array_tasks_run_with_their_indexes(benchpool: Benchpool, folder: Path) -> None:
    (folder / "fold.py").write_text(
        "import os, pathlib\n"
        'task = os.environ["SLURM_ARRAY_TASK_ID"]\n'
        'out = pathlib.Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "fold.txt")\n'
        'out.write_text(task + " of " + os.environ["BENCHPOOL_ARRAY_TASK_COUNT"])\n'
    )
    result = benchpool("submit", "--array", "2-6:2%2", "fold.py")
    assert result.status == 0, result.err
    id_ = result.out.split()[0]
    over = until(
        lambda: (now := sweep(benchpool, id_))["state"] == "over" and now,
        "the array is over",
        progress=lambda: len(benchpool("jobs", "--json").out),
    )
    assert [row["parameters"]["array_task_id"] for row in over["trials"]] == [2, 4, 6]
    texts = {file.parent.name: file.read_text() for file in folder.rglob("fold.txt")}
    assert texts == {"002": "2 of 3", "004": "4 of 3", "006": "6 of 3"}


def test_notebook_gets_values_in_its_cells(
    benchpool: Benchpool, folder: Path, environ: dict[str, str]
) -> None:
    environ["VIRTUAL_ENV"] = sys.prefix  # its Python has a kernel
    book = v4.new_notebook()
    book.cells = [v4.new_code_cell("rate = 0.5"), v4.new_code_cell(LOGGED)]
    (folder / "train.ipynb").write_text(writes(book))
    refused = benchpool("submit", "--sweep", "lr=1,2", "train.ipynb")
    assert "The notebook has no parameter 'lr': its parameters are rate." in refused.err
    asked = ("--sweep", "rate=0.25, 0.75", "--metric", "loss")
    result = benchpool("submit", *asked, "train.ipynb")
    assert result.status == 0, result.err
    over = until(
        lambda: (now := sweep(benchpool, result.out.split()[0]))["state"] == "over" and now,
        "the sweep is over",
        progress=lambda: len(benchpool("jobs", "--json").out),
    )
    assert [(row["parameters"], row["value"]) for row in over["trials"]] == [
        ({"rate": 0.25}, 0.25),
        ({"rate": 0.75}, 0.75),
    ]
