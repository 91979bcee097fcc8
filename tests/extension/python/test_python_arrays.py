"""``benchpool.submit(…, array=…)`` and ``%%train --array`` with a real pool."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import benchpool
from benchpool import magic
from benchpool.arrays import ArrayHandle
from benchpool_scheduler.errors import InvalidInput, NotFound

pytestmark = pytest.mark.slow

FOLD = """\
import os, sys
print("fold", os.environ["BENCHPOOL_ARRAY_TASK_ID"], "of", os.environ["SLURM_ARRAY_TASK_COUNT"])
sys.exit(int(os.environ["BENCHPOOL_ARRAY_TASK_ID"] == "4"))
"""


class Session:
    """Part of IPython that ``%%train`` uses."""

    def __init__(self, *inputs: str) -> None:
        self.user_ns = {"In": ["", *inputs]}


def test_array_task_is_found_by_number(susan: Path) -> None:
    (susan / "fold.py").write_text(FOLD)
    array = benchpool.submit("fold.py", array="2-6:2%2", retries=0)
    assert array.wait().states == {2: "done", 4: "failed", 6: "done"}
    assert "fold 6 of 3" in array[6].logs()
    assert array[4].facts.exit_code == 1
    assert (list(array), len(array), 3 in array) == ([2, 4, 6], 3, False)
    with pytest.raises(NotFound, match=r"fold has no task 3\. Its tasks are 2, 4, 6"):
        array[3]


def test_unstarted_task_has_no_job_and_stop_ends_array(susan: Path) -> None:
    (susan / "wait.py").write_text("import time; time.sleep(600)")
    array = benchpool.submit("wait.py", array="0-9%1", name="waits", cpus=1)
    with pytest.raises(NotFound, match="Task 9 of waits has not started: at most 1 run at a time"):
        array[9]
    assert array.states[9] == "waiting"
    array.stop().wait()
    assert (array.states[0], array.states[9]) == ("stopped-early", "waiting")


def test_notebook_and_cell_read_task_number_without_parameter(susan: Path) -> None:
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell("import os; assert os.environ['SLURM_ARRAY_TASK_ID']")]
    nbformat.write(book, susan / "book.ipynb")
    of_book = benchpool.submit("book.ipynb", array="7")
    cell = "import os\nprint(base + int(os.environ['BENCHPOOL_ARRAY_TASK_ID']))"
    of_cell = magic.train(Session("base = 100", "sent"), "--array 1,5%1 --name cells", cell)
    assert isinstance(of_cell, ArrayHandle)
    assert of_book.wait().states == {7: "done"}
    assert of_cell.wait().states == {1: "done", 5: "done"}
    assert "105" in of_cell[5].logs()


@pytest.mark.parametrize(
    ("line", "refusal"),
    [
        ("--array 0-3 --trials 3", "%%train: --trials cannot be combined with --array"),
        ("--array 0-3 --sweep lr=1,2", "%%train: --sweep cannot be combined with --array"),
        ("--array all", "--array all names no tasks. Write 0-31, 1,3,7"),
    ],
)
def test_invalid_array_option_is_reported(
    susan: Path, capsys: pytest.CaptureFixture[str], line: str, refusal: str
) -> None:
    assert magic.train(Session("sent"), line, "lr = 1") is None
    assert refusal in capsys.readouterr().err


def test_empty_array_is_rejected_before_sending(susan: Path) -> None:
    with pytest.raises(InvalidInput, match="--array 5-1: 5-1 must go from a smaller number"):
        benchpool.submit("nothing.py", array="5-1")
