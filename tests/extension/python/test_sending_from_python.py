"""``import benchpool``: send, list, follow, act, with a real pool."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest

import benchpool
from benchpool.display import Row
from benchpool_scheduler.contract import NotebookEntry, State
from benchpool_scheduler.errors import InvalidInput, NotFound, Refused, Unavailable

pytestmark = pytest.mark.slow


def test_a_script_is_sent_waited_for_and_read(susan: Path) -> None:
    (susan / "train.py").write_text("import sys\nprint('loss', sys.argv[1:])")
    job = benchpool.submit("train.py", "--epochs", 3, gpus=2, name="mine")
    assert job.wait().state == "succeeded"
    assert job.facts.exit_code == 0
    assert job.logs() == "loss ['--epochs', '3']\n"
    assert "".join(job.follow()) == job.logs()
    assert [each.attempt for each in job.attempts] == [1]
    assert benchpool.jobs()[0] == job
    assert benchpool.job(job.id[:8]) == job
    assert repr(job) == f"{job.id[:8]} mine: succeeded (2 GPUs)"


def test_a_notebook_file_is_sent_whole(susan: Path) -> None:
    (susan / "deep").mkdir()
    cells = [nbformat.v4.new_code_cell("a = 1"), nbformat.v4.new_code_cell("print('got', a)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), susan / "deep" / "book.ipynb")
    job = benchpool.submit("deep/book.ipynb").wait()
    assert job.facts.state is State.SUCCEEDED
    assert "got 1\n" in job.logs()
    (copy,) = (susan / "deep" / "benchpool-results").glob("book-*/book.ipynb")
    assert nbformat.read(copy, as_version=4).cells[1].outputs[0].text == "got 1\n"


def test_a_job_is_paused_resumed_and_cancelled(susan: Path) -> None:
    (susan / "long.py").write_text("import time\nprint('on', flush=True)\ntime.sleep(600)")
    job = benchpool.submit("long.py")
    assert next(job.follow()) == "on\n"
    assert job.pause("lunch").facts.state in {State.PAUSING, State.PAUSED}
    assert job.change(priority=80).facts.priority == 80
    assert job.rename("longer").name == "longer"
    job.resume()  # told while it is still pausing, it goes on afterwards
    assert not job.ended
    job.cancel()
    assert job.wait().facts.state is State.CANCELLED
    with pytest.raises(Refused, match="cancelled"):
        job.pause()


def test_what_cannot_be_sent_is_said_before(susan: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file nothing\.py in"):
        benchpool.submit("nothing.py")
    cells = [nbformat.v4.new_code_cell("\n\nprint(y)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), susan / "bad.ipynb")
    with pytest.raises(InvalidInput, match=r"Cell 1, line 3: `y` is defined in no cell"):
        benchpool.submit("bad.ipynb")
    with pytest.raises(NotFound, match="no job that you may see begins with 'zzzz'"):
        benchpool.job("zzzz")


def test_quota_and_status_are_those_of_the_pool(susan: Path) -> None:
    assert benchpool.quota().user == "susan"
    assert [each.name for each in benchpool.quota().projects] == ["vision"]
    assert benchpool.status().text


def test_without_a_pool_the_way_out_is_named(
    susan: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BENCHPOOL_URL")
    monkeypatch.setenv("BENCHPOOL_STATE", str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="start one with `benchpool up`"):
        benchpool.jobs()


def test_the_row_follows_state_and_log_to_the_end(susan: Path) -> None:
    script = "import os, sys\nprint('<b>first</b>', flush=True)\nsys.exit(3)"
    (susan / "train.py").write_text(script)
    job = benchpool.submit("train.py", name="<i>row</i>")
    row = Row(job)
    done = threading.Event()

    def look(_change: object) -> None:
        if "failed" in row.title.value and "first" in row.log.value:
            done.set()

    row.title.observe(look, "value")
    row.log.observe(look, "value")
    look(None)
    assert done.wait(60)
    assert row.title.value == "✖ failed  <i>row</i>  1 GPU · attempt 1"
    assert row.log.value == "<b>first</b>\n"
    assert row.reason.value == "ended with exit code 3"
    assert {type(each).__name__ for each in row.widget.children} == {"HBox", "Label", "Textarea"}
    shown = [name for name, each in row.buttons.items() if each.layout.display != "none"]
    assert shown == []


def test_a_button_that_is_refused_says_why(susan: Path) -> None:
    (susan / "train.py").write_text("print(1)")
    job = benchpool.submit("train.py").wait()
    row = Row(job, follow=False)
    row.buttons["pause"].click()
    assert "succeeded" in row.reason.value


def test_importing_it_is_light() -> None:
    code = (
        "import sys; before = set(sys.modules); import benchpool;"
        "new = {each.split('.')[0] for each in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['benchpool']"


def test_names_that_are_not_there_are_said_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = benchpool.nothing
    assert {"submit", "jobs", "checkpoint"} <= {*dir(benchpool), "checkpoint"}


def test_a_repeat_with_the_same_key_is_the_same_job(susan: Path) -> None:
    (susan / "train.py").write_text("print(1)")
    first = benchpool.submit("train.py", key="again")
    assert benchpool.submit("train.py", key="again") == first
    submission = benchpool.handles.client().submission(first.id)
    assert not isinstance(submission.entry, NotebookEntry)
    assert submission.output_dir is not None
    assert submission.output_dir.startswith(str(susan / "benchpool-results" / "train-"))
