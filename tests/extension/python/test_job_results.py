"""``job.result()``, ``job["model"]`` and ``await job`` with a real pool."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
import threading
from pathlib import Path

import nbformat
import pytest

import benchpool
from benchpool.handles import JobHandle
from benchpool.values.reading import StoredValues
from benchpool_scheduler.errors import InvalidInput

pytestmark = pytest.mark.slow


def notebook(folder: Path, *cells: str) -> str:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
    nbformat.write(book, folder / "book.ipynb")
    return "book.ipynb"


WAITS = "import pathlib, time\nwhile not pathlib.Path('go').exists():\n    time.sleep(0.02)\n"


async def test_values_return_by_name_and_job_acts_as_future(susan: Path) -> None:
    job = benchpool.submit(notebook(susan, f"{WAITS}model = {{'w': [1, 2]}}\nlosses = [0.5]"))
    ended: list[JobHandle] = []
    over = threading.Event()

    def note(each: JobHandle) -> None:
        ended.append(each)
        over.set()

    job.add_done_callback(note)
    assert (job.done(), job.cancelled()) == (False, False)
    with pytest.raises(concurrent.futures.TimeoutError, match=r"has not ended within 0\.1 s"):
        job.result(timeout=0.1)
    assert job.notebook is None or job.notebook.suffix == ".ipynb"
    (susan / "go").touch()
    values = await job
    assert isinstance(values, StoredValues)
    assert dict(values) == {"model": {"w": [1, 2]}, "losses": [0.5]}
    assert job["model"] is job.result()["model"]
    assert job.exception() is None
    assert (job.done(), job.running()) == (True, False)
    assert over.wait(60)
    assert ended == [job]
    assert job.notebook is not None
    record = job.notebook.with_name("environment.json")
    assert sorted(job.files) == sorted([job.notebook, record]), "values are no files of the results"
    again = benchpool.job(job.id)
    assert again["losses"] == [0.5]
    with pytest.raises(KeyError, match=r"net was not kept\. It kept losses, model"):
        again["net"]


def test_kept_names_and_pickles_are_opt_in(susan: Path) -> None:
    pytest.importorskip("cloudpickle")
    path = notebook(susan, "class Net:\n    size = 7\nnet, other = Net(), 1")
    job = benchpool.submit(path, keep=["net"], pickle=True)
    assert job["net"].size == 7
    assert list(job.result()) == ["net"]
    plain = benchpool.submit(path, keep=["net"])
    with pytest.raises(KeyError, match=r"net is an object of the type .*Net, which has no safe"):
        plain["net"]


def test_failed_notebook_raises_error_with_cell_lines(susan: Path) -> None:
    job = benchpool.submit(notebook(susan, "kept = 3", "def f(x):\n    return {}[x]\nf('lr')"))
    with pytest.raises(KeyError) as raised:  # the exception type of the job
        job.result()
    failed = job.exception()
    assert isinstance(failed, benchpool.JobFailed)
    assert str(failed) == str(raised.value)
    assert "failed in cell 2 with KeyError" in failed.message
    assert failed.error == "KeyError"
    assert "return {}[x]" in str(failed)
    assert "cell 2, line 2" in failed.traceback
    shown = "\n".join(getattr(failed, "_render_traceback_")())  # noqa: B009 (IPython's own name)
    assert "return {}[x]" in shown
    assert "job_outcome" not in shown
    assert job["kept"] == 3, "what the cells before had left"


async def test_failed_and_cancelled_scripts_raise_different_errors(susan: Path) -> None:
    (susan / "bad.py").write_text("import json\ndef f():\n    json.loads('{')\nf()\n")
    with pytest.raises(benchpool.JobFailed) as raised:
        await benchpool.submit("bad.py")
    assert raised.value.error == "JSONDecodeError"
    assert raised.value.traceback.startswith("Traceback (most recent call last):")
    with pytest.raises(InvalidInput, match="a script, which returns no values"):
        benchpool.submit("bad.py", keep=["x"])
    (susan / "long.py").write_text(WAITS)
    job = benchpool.submit("long.py")
    job.cancel()
    with pytest.raises(concurrent.futures.CancelledError, match="was cancelled"):
        await job
    assert job.cancelled()


@pytest.mark.parametrize("with_pandas", [True, False])
def test_reported_metrics_form_table_of_steps(
    susan: Path, monkeypatch: pytest.MonkeyPatch, with_pandas: bool
) -> None:
    if with_pandas:
        pandas = pytest.importorskip("pandas")
    else:
        monkeypatch.setitem(sys.modules, "pandas", None)
    cell = (
        "import benchpool\nbenchpool.log(loss=0.5, step=1)\nbenchpool.log(loss=0.25, acc=1, step=2)"
    )
    job = benchpool.submit(notebook(susan, cell))
    job.result()
    found = job.metrics
    if with_pandas:
        assert isinstance(found, pandas.DataFrame)
        found = found.to_dict("records")
    assert [each["step"] for each in found] == [1, 2]
    assert [each["loss"] for each in found] == [0.5, 0.25]
    assert found[1]["acc"] == 1


def test_function_return_value_is_job_result(
    susan: Path,
) -> None:
    code = (
        "import benchpool\n"
        "def trained(lr):\n    return {'loss': lr / 2}\n"
        "def silent():\n    pass\n"
        "jobs = [benchpool.submit(trained, 0.5), benchpool.submit(silent)]\n"
        "print([each.result() for each in jobs])\n"
    )
    (susan / "sends.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "sends.py"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "[{'loss': 0.25}, None]\n", done.stderr


def test_undelivered_files_are_fetched(susan: Path) -> None:
    (susan / "go.py").write_text("open('made', 'w').write('model')")
    (susan / "benchpool-results").write_text("in the way")
    job = benchpool.submit("go.py")
    assert job.exception() is None
    assert job.facts.reason is not None
    assert job.facts.reason.code == "results-not-delivered"
    (made,) = job.files
    assert made.read_text() == "model"
