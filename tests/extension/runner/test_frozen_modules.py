"""A job imports the user's modules as they were when it was sent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchpool import own_modules
from benchpool_scheduler.client import notebooks
from benchpool_scheduler.client.imports.own_files import MOST_FILES
from benchpool_scheduler.worker import job_package
from benchpool_support.runner_jobs import NotebookJob


def sent(folder: Path, *cells: str) -> dict[str, object]:
    """Return the metadata about own modules of a notebook with these cells."""
    made = [notebooks.JobCell(str(n), n, text) for n, text in enumerate(cells)]
    return own_modules.of_cells(made, folder)


def names(entries: dict[str, object], folder: Path) -> list[str]:
    modules = entries.get("modules", {})
    assert isinstance(modules, dict)
    return [Path(path).relative_to(folder.resolve()).as_posix() for path in modules]


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = folder / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


# ------------------------------------------------------------------ modules that are sent


def test_imported_modules_and_whole_packages_are_sent(tmp_path: Path) -> None:
    write(
        tmp_path,
        helper="import deep",
        deep="try:\n    import perhaps\nexcept ImportError:\n    pass",
        perhaps="",
        unused="",
        pkg__in____init__="",
        pkg__in__a="from . import b",
        pkg__in__b="",
        pkg__in__plugins__in__by_name="",
    )
    entries = sent(tmp_path, "import json, helper", "def f():\n    from pkg.a import x")
    assert names(entries, tmp_path) == [
        *("deep.py", "helper.py", "perhaps.py"),
        *("pkg/__init__.py", "pkg/a.py", "pkg/b.py", "pkg/plugins/by_name.py"),
    ]
    assert entries == sent(tmp_path, "import json, helper", "def f():\n    from pkg.a import x")


def test_folder_added_to_path_is_searched(tmp_path: Path) -> None:
    write(tmp_path, src__in__tool="import other", src__in__other="")
    entries = sent(tmp_path, "import sys\nsys.path.insert(0, 'src')\nimport tool")
    assert names(entries, tmp_path) == ["src/other.py", "src/tool.py"]


def test_modules_above_limit_are_counted(tmp_path: Path) -> None:
    write(tmp_path, large="#" * (1 << 20) + "\n", **{f"p__in__m{n}": "" for n in range(MOST_FILES)})
    write(tmp_path, p__in____init__="")
    entries = sent(tmp_path, "import large, p")
    assert len(names(entries, tmp_path)) == MOST_FILES
    assert entries["modules_left"] == 2


def test_cells_without_own_modules_record_nothing(tmp_path: Path) -> None:
    assert sent(tmp_path, "import json\n%pip install x", "!ls") == {}


# ------------------------------------------------------------------ in a job


EDIT = """
import pathlib
for file in pathlib.Path.cwd().rglob("*.py"):
    file.write_text("raise RuntimeError('edited meanwhile')")
"""


@pytest.mark.slow
def test_edit_during_run_changes_nothing(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write(
        work,
        helper="import pathlib\ndef value():\n    return 1 / 0\nhere = pathlib.Path(__file__)",
        pkg__in____init__="from .late import x",
        pkg__in__late="x = 'as it was sent'",
        gone="here = 'as well'",
    )
    cells = (
        EDIT,
        "pathlib.Path('gone.py').unlink()",
        "import helper, gone, pkg\nprint(pkg.x, gone.here, helper.here == work)",
        "import subprocess, sys\ncommand = [sys.executable, '-c', 'import pkg; print(pkg.x)']\n"
        "print(subprocess.check_output(command, text=True))",
        "import inspect\nprint('1 / 0' in inspect.getsource(helper))\nhelper.value()",
    )
    entries = sent(work, *cells)
    work_is = f"from pathlib import Path\nwork = Path({str(work / 'helper.py')!r})"
    job = NotebookJob(tmp_path, entries)
    status, log = job.run(work_is, *cells)
    assert status == 1
    assert "as it was sent as well True\n" in log
    assert log.count("as it was sent") == 2
    assert "True\n" in log.partition("cell 6")[2]
    assert "return 1 / 0" in log
    assert "edited meanwhile" not in log
    assert "modules" not in json.loads(job.copy.read_text())["metadata"].get("benchpool", {})


@pytest.mark.slow
def test_unsent_module_is_read_live_and_own_sitecustomize_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine"
    write(mine, sitecustomize="import builtins\nbuiltins.customized = 'mine'")
    ours = tmp_path / job_package.NAME
    job_package.write(ours, job_package.content())
    monkeypatch.setenv("PYTHONPATH", f"{ours}{os.pathsep}{mine}")
    work = tmp_path / "work"
    write(work, kept="x = 1", live="x = 1")
    job = NotebookJob(tmp_path, sent(work, "import kept") | {"modules_left": 1})
    change = "open('live.py', 'w').write('x = 2')\nopen('kept.py', 'w').write('x = 2')"
    status, log = job.run(change, "import kept, live\nprint(kept.x, live.x, customized)")
    assert status == 0
    assert "1 2 mine\n" in log
    assert "some of your own modules exceed the limits" in log
    assert "sitecustomize" not in log + capfd.readouterr().err
