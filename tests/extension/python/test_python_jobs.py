"""``import benchpool`` with a real pool: send, list, follow and change jobs."""

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


def test_script_is_sent_awaited_and_read(susan: Path) -> None:
    (susan / "train.py").write_text("import sys\nprint('loss', sys.argv[1:])")
    job = benchpool.submit("train.py", "--epochs", 3, gpus=2, name="mine")
    assert job.wait().state == "succeeded"
    assert job.facts.exit_code == 0
    assert job.logs() == "loss ['--epochs', '3']\n"
    assert "".join(job.follow()) == job.logs()
    assert [each.attempt for each in job.attempts] == [1]
    assert (job.usage.job, job.usage.rule) == (job.id, None)
    assert benchpool.jobs()[0] == job
    assert benchpool.job(job.id[:8]) == job
    assert repr(job) == f"{job.id[:8]} mine: succeeded (2 GPUs)"


def test_notebook_file_is_sent_whole(susan: Path) -> None:
    (susan / "deep").mkdir()
    cells = [nbformat.v4.new_code_cell("a = 1"), nbformat.v4.new_code_cell("print('got', a)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), susan / "deep" / "book.ipynb")
    job = benchpool.submit("deep/book.ipynb").wait()
    assert job.facts.state is State.SUCCEEDED
    assert "got 1\n" in job.logs()
    (copy,) = (susan / "deep" / "benchpool-results").glob("book-*/book-*.ipynb")
    assert copy.stem == copy.parent.name, "a name of its own"
    assert nbformat.read(copy, as_version=4).cells[2].outputs[0].text == "got 1\n"


def test_job_is_paused_resumed_and_cancelled(susan: Path) -> None:
    (susan / "long.py").write_text("import time\nprint('on', flush=True)\ntime.sleep(600)")
    job = benchpool.submit("long.py")
    assert next(job.follow()).startswith("on")  # the end of the text may arrive separately
    assert job.pause("lunch").facts.state in {State.PAUSING, State.PAUSED}
    assert job.change(priority=80).facts.priority == 80
    assert job.rename("longer").name == "longer"
    assert job.note("warm-up helps").facts.note == "warm-up helps"
    assert job.note().facts.note == ""
    job.resume()  # requested while it is pausing; it resumes after the pause
    assert not job.ended
    job.cancel()
    assert job.wait().facts.state is State.CANCELLED
    with pytest.raises(Refused, match="cancelled"):
        job.pause()


def test_job_awaits_job_given_by_handle(susan: Path) -> None:
    (susan / "wait.py").write_text("import time; time.sleep(600)")
    first = benchpool.submit("wait.py")
    second = benchpool.submit("wait.py", after=first)
    assert [it.job for it in second.facts.awaits] == [first.id]
    first.cancel()
    assert second.wait().facts.state == "cancelled"
    assert second.facts.reason is not None
    assert second.facts.reason.code == "dependency-failed"


def test_unsendable_job_is_rejected_before_sending(susan: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no file nothing\.py in"):
        benchpool.submit("nothing.py")
    cells = [nbformat.v4.new_code_cell("\n\nprint(y)")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), susan / "bad.ipynb")
    with pytest.raises(InvalidInput, match=r"Cell 1, line 3: `y` is defined in no cell"):
        benchpool.submit("bad.ipynb")
    with pytest.raises(NotFound, match="No visible job found for ID 'zzzz'"):
        benchpool.job("zzzz")


def test_failing_imports_are_rejected_before_sending(susan: Path) -> None:
    (susan / "train.py").write_text("import part")
    (susan / "part.py").write_text("x = 1\nimport msgspecc")
    with pytest.raises(InvalidInput, match=r"^part\.py, line 2: there is no module `msgspecc` in"):
        benchpool.submit("train.py")
    cells = [nbformat.v4.new_code_cell("x = 1"), nbformat.v4.new_code_cell("\nimport msgspecc")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), susan / "bad.ipynb")
    with pytest.raises(InvalidInput, match=r"^Cell 2, line 2: .*did you mean `msgspec`\?$"):
        benchpool.submit("bad.ipynb")


SENDER = """\
import benchpool

def send():
    return benchpool.submit("train.py", gpus=99)

send()
"""


def test_script_prints_refusal_in_one_line(susan: Path) -> None:
    (susan / "train.py").write_text("print(1)")
    (susan / "send.py").write_text(SENDER)
    done = subprocess.run([sys.executable, "send.py"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("benchpool: ")
    assert "99 GPUs" in line
    assert line.endswith("(send.py, line 4)")
    (susan / "send.py").write_text("import benchpool\nbenchpool.jobs()\n1 / 0")
    done = subprocess.run([sys.executable, "send.py"], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_job_reason_names_refusal_of_its_script(susan: Path) -> None:
    (susan / "train.py").write_text("import benchpool\nbenchpool.submit('gone.py')")
    job = benchpool.submit("train.py").wait()
    assert job.facts.reason is not None
    assert job.facts.reason.text.startswith("train failed with InvalidInput: There is no file gone")
    assert job.facts.reason.numbers == {"exit_code": 1, "line": 2, "file": "train.py"}
    assert job.facts.reason.text in repr(job)


def test_quota_and_status_come_from_pool(susan: Path) -> None:
    assert benchpool.quota().user == "susan"
    assert [each.name for each in benchpool.quota().projects] == ["vision"]
    assert benchpool.status().text


def test_missing_pool_is_reported_with_remedy(
    susan: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("BENCHPOOL_URL")
    monkeypatch.setenv("BENCHPOOL_STATE", str(tmp_path / "none"))
    with pytest.raises(Unavailable, match="Start one with `benchpool up`"):
        benchpool.jobs()


def test_row_follows_state_and_log_to_end(susan: Path) -> None:
    script = "import os, sys\nprint('<b>first</b>', flush=True)\nsys.exit(3)"
    (susan / "train.py").write_text(script)
    job = benchpool.submit("train.py", name="<i>row</i>")
    row = Row(job)
    done = threading.Event()

    def look(_change: object) -> None:
        if "failed" in row.title.value and row.log.value.endswith("\n"):
            done.set()

    row.title.observe(look, "value")
    row.log.observe(look, "value")
    look(None)
    assert done.wait(60)
    assert (row.title.value, row.size.value) == ("✖ failed · <i>row</i>", "1 GPU")
    assert row.log.value == "<b>first</b>\n"
    assert row.reason.value == "<i>row</i> ended with exit code 3."
    assert {type(each).__name__ for each in row.widget.children} == {"Box", "Label", "Textarea"}
    assert row.bar.layout.display == row.done.layout.display == "none", "nothing is known of it"
    shown = [name for name, each in row.buttons.items() if each.layout.display != "none"]
    assert shown == []
    assert 'data-commandlinker-command="benchpool:open-result"' in row.results.value
    assert job.id in row.results.value
    assert "<i>row</i>" not in row.results.value, "no text of the job is in it"


def test_refused_button_shows_reason(susan: Path) -> None:
    (susan / "train.py").write_text("print(1)")
    job = benchpool.submit("train.py").wait()
    row = Row(job, follow=False)
    assert (row.done.value, row.bar.bar_style) == ("100 %", "success")
    assert row.log.layout.display == "none", "no empty box"
    row.buttons["pause"].click()
    assert "succeeded" in row.reason.value


def test_import_loads_no_other_packages() -> None:
    code = (
        "import sys; before = set(sys.modules); import benchpool;"
        "new = {each.split('.')[0] for each in set(sys.modules) - before};"
        "print(sorted(new - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['benchpool']"


def test_missing_attribute_is_reported() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = benchpool.nothing
    assert {"submit", "jobs", "checkpoint"} <= {*dir(benchpool), "checkpoint"}


def test_repeated_key_returns_same_job(susan: Path) -> None:
    (susan / "train.py").write_text("print(1)")
    first = benchpool.submit("train.py", key="again")
    assert benchpool.submit("train.py", key="again") == first
    submission = benchpool.handles.client().submission(first.id)
    assert not isinstance(submission.entry, NotebookEntry)
    assert submission.output_dir is not None
    assert submission.output_dir.startswith(str(susan / "benchpool-results" / "train-"))


def test_gpus_chosen_by_code_are_reported_before_sending(
    susan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (susan / "fixed.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    benchpool.submit("fixed.py").cancel()
    warning = "fixed.py, line 2: sets CUDA_VISIBLE_DEVICES to `0`, which overrides the GPUs"
    assert warning in "".join(capsys.readouterr())


def test_excluded_files_are_reported_before_sending(
    susan: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (susan / "train.py").write_text("print(1)")
    (susan / "tab\tname.txt").write_text("x")
    benchpool.submit("train.py").cancel()
    output = "".join(capsys.readouterr())
    assert "sent with the job: 1 file (" in output
    assert "left out: 1 × a name with a control character." in output
    assert "left out: tab\\tname.txt (a name with a control character)." in output
