"""Log of a notebook job: cells by number and progress bars."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import nbformat
import pytest

from benchpool_support.runner_jobs import NotebookJob, read_until
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow


@pytest.fixture
def job(tmp_path: Path) -> NotebookJob:
    return NotebookJob(tmp_path)


def test_traceback_names_notebook_cells_and_lines(job: NotebookJob) -> None:
    define = "def f(x):\n    y = 1\n    return y / x"
    catch = (
        "import traceback, warnings\ntry:\n    f(0)\nexcept Exception:\n    traceback.print_exc()"
    )
    status, log = job.run("", define, catch, "warnings.warn('old')", "1\nf(0)")
    assert status == 1
    raised = log.partition("benchpool: cell 5 (4 of 4)")[2]
    assert "\ncell 5, line 2\n" in raised
    assert "\ncell 2, line 3, in f(x)\n" in raised
    printed = log.partition("benchpool: cell 3")[2].partition("benchpool: cell 4")[0]
    assert "cell 3, line 3, in <module>" in printed
    assert "cell 2, line 3, in f" in printed
    assert "cell 4, line 1: UserWarning: old" in log
    assert "ipykernel_" not in log
    assert "Cell In" not in log


BARS = """
import sys
from IPython.display import HTML, display
for n in range(1, 5):
    bar = f"\\r {n * 25}%|###| {n}/4 [00:0{n}<00:0{4 - n},  1.0it/s]"
    print(bar, end="", file=sys.stderr, flush=True)
"""
SHOWN = """
shown = display(HTML("<progress value='0' max='4'></progress>"), display_id=True)
for n in range(1, 5):
    shown.update(HTML(f"<progress value='{n}' max='4'></progress> [{n}/4 00:0{n} < 00:0{4 - n}]"))
"""


def test_progress_bars_appear_in_log_and_progress(
    job: NotebookJob,
) -> None:
    assert job.run(BARS, SHOWN + "import time; time.sleep(1)\nprint('after')")[0] == 0
    log = job.run(BARS, SHOWN + "print('after')")[1]
    shown = [line.rpartition("\r")[2] for line in log.split("\n")]
    assert " 100%|###| 4/4 [00:04<00:00,  1.0it/s]" in shown
    assert "100%|##########| 4/4 [00:04<00:00]" in shown
    assert "after" in shown
    book = nbformat.read(job.copy, as_version=4)
    assert [each.output_type for each in book.cells[1].outputs] == ["display_data", "stream"]


def test_progress_names_cell_and_bar(job: NotebookJob) -> None:
    wait = "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)"
    with job.running("x = 1", BARS + wait) as worker:
        read_until(worker, "cell 2 (2 of 2)")
        progress = until(
            lambda: json.loads((job.root / "progress.json").read_text()),
            "the progress has a bar",
            holds=lambda progress: ":" in progress["text"],
        )
        (job.root / "work" / "go").touch()
        worker.communicate(timeout=60)
    # A bar that has just begun gives no fraction.
    assert (progress["fraction"], progress["text"].partition("/")[0][:-1]) == (
        None,
        "cell 2, 2 of 2: ",
    )


def test_closed_socket_at_kernel_shutdown_is_not_logged(
    job: NotebookJob, capfd: pytest.CaptureFixture[str]
) -> None:
    logs = """\
import errno, logging
for number in (errno.ENOTSOCK, errno.EBADF):
    try:
        raise OSError(number, f"number {number}")
    except OSError:
        logging.getLogger("tornado.general").error("uncaught", exc_info=True)
"""
    status, _ = job.run(logs)
    log = capfd.readouterr().err
    assert (status, f"number {errno.ENOTSOCK}" in log) == (0, False)
    assert f"number {errno.EBADF}" in log
