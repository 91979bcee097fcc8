"""A paused notebook resumes from its checkpoint with the same result."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

import benchpool
from benchpool import handles
from benchpool_scheduler.contract import Job, State

pytestmark = pytest.mark.slow

TRAIN = """
import time
from benchpool import checkpoint
total, step = 0.0, 0
saved = checkpoint.latest()
if saved is not None:
    total, step = eval((saved / "state").read_text())
    print("resumed at", step, flush=True)
while step < 300:
    total, step = total * 0.9 + step, step + 1
    checkpoint.progress(step / 300, f"step {step}")
    print("step", step, flush=True)
    time.sleep(0.01)
    if checkpoint.should_stop():
        with checkpoint.commit(step) as folder:
            (folder / "state").write_text(repr((total, step)))
        break
"""


def write(path: Path, *cells: str) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbformat.write(book, path)


def wait_until(job: benchpool.Job, state: State) -> None:
    """Wait for a state with the pool's events."""
    for event in handles.client().events():
        facts = event.data if isinstance(event.data, Job) else None
        if event.kind == "open":
            facts = job.refresh().facts
        if facts is not None and facts.id == job.id and facts.state is state:
            return


def test_user_paused_notebook_resumes_from_checkpoint(susan: Path) -> None:
    write(susan / "train.ipynb", TRAIN, "print('result', repr(total))")
    whole = benchpool.submit("train.ipynb", name="whole")
    job = benchpool.submit("train.ipynb", name="paused")
    for text in job.follow():
        if "step 40" in text:
            break
    job.pause()
    wait_until(job, State.PAUSED)
    assert "result" not in job.logs()
    job.resume()
    assert job.wait().facts.state is State.SUCCEEDED
    assert job.facts.attempt == 2
    assert "resumed at" in job.logs()
    assert whole.wait().facts.state is State.SUCCEEDED
    result = [line for line in job.logs().splitlines() if line.startswith("result")]
    assert result == [line for line in whole.logs().splitlines() if line.startswith("result")]
    assert len(result) == 1
