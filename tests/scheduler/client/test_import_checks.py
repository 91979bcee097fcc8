"""Imports are checked with the Python that will run them, without running any code."""

from __future__ import annotations

import ast
import os
import shlex
import sys
import time
import venv
from pathlib import Path

import pytest
from nbformat import v4, writes

from benchpool_scheduler.client.imports import (
    MissingModule,
    Piece,
    job_environ,
    missing,
    missing_of,
    missing_of_script,
)
from benchpool_scheduler.client.imports.unseen import Unseen, unseen_here
from benchpool_scheduler.contract import (
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    ScriptEntry,
    SnapshotFile,
)


def look(text: str, root: Path) -> list[MissingModule]:
    """Check one piece of code with the Python of these tests."""
    piece = Piece("cell-1", ast.parse(text), text)
    return missing([piece], root, sys.executable, job_environ(os.environ, {}))


def sure(found: list[MissingModule]) -> list[str]:
    """Return the certain findings in short form: place and module."""
    return [f"{each.where}:{each.line} {each.text.split('`')[1]}" for each in found if each.sure]


def test_missing_import_is_named_with_line_number_and_remedy(tmp_path: Path) -> None:
    found = look("import os.path, httpx\nimport msgspecc\nimport cv2\nimport zzz_none", tmp_path)
    here = f"in {sys.executable}, the Python of this job"
    assert [(each.line, each.sure, each.text) for each in found] == [
        (2, True, f"there is no module `msgspecc` {here}; did you mean `msgspec`?"),
        (
            3,
            True,
            f"there is no module `cv2` {here}: run `{shlex.quote(sys.executable)} -m pip install "
            "opencv-python`, or choose another Python",
        ),
        (
            4,
            True,
            f"there is no module `zzz_none` {here}: install its package there, or choose another "
            "Python",
        ),
    ]


def test_another_python_is_checked_for_its_own_packages(tmp_path: Path) -> None:
    venv.create(tmp_path / "other", with_pip=False, symlinks=True)
    python = tmp_path / "other" / "bin" / "python"
    (site,) = (tmp_path / "other" / "lib").glob("python3*/site-packages")
    (site / "only_there.py").write_text("raise SystemExit('nobody may run this')")
    text = "import only_there, httpx"
    piece = Piece("a", ast.parse(text), text)
    found = missing([piece], tmp_path, str(python), job_environ(os.environ, {}))
    assert sure(found) == ["a:1 httpx"]
    assert sure(look(text, tmp_path)) == ["cell-1:1 only_there"]


def test_python_path_counts_only_if_passed_to_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "ours_apart.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    assert sure(look("import ours_apart", tmp_path)) == ["cell-1:1 ours_apart"]
    piece = Piece("a", ast.parse("import ours_apart"), "")
    given = job_environ(os.environ, {"PYTHONPATH": str(tmp_path / "lib")})
    assert missing([piece], tmp_path, sys.executable, given) == []


def test_local_files_are_found_and_followed(tmp_path: Path) -> None:
    (tmp_path / "utils.py").write_text("from part import deep\nimport part.gone")
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "__init__.py").write_text("from . import sibling")
    (tmp_path / "part" / "sibling.py").write_text("")
    (tmp_path / "part" / "deep.py").write_text("x = 1\nimport zzz_none")
    found = look("import utils", tmp_path)
    assert sure(found) == ["utils.py:2 part.gone", "part/deep.py:2 zzz_none"]


def test_data_folder_does_not_hide_missing_package_nor_reverse(
    tmp_path: Path,
) -> None:
    (tmp_path / "httpx").mkdir()
    (tmp_path / "namespace").mkdir()
    (tmp_path / "namespace" / "inner.py").write_text("")
    assert look("import httpx\nimport namespace.inner", tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import zzz_none\nexcept ImportError:\n    zzz_none = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import zzz_none",
        "import sys\nif sys.platform == 'win32':\n    import zzz_none",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import zzz_none",
        "from benchpool import checkpoint",
    ],
)
def test_guarded_imports_are_not_reported(tmp_path: Path, text: str) -> None:
    assert look(text, tmp_path) == []


@pytest.mark.parametrize(
    "text",
    [
        "def plot():\n    import zzz_none",
        "import sys\nsys.path.insert(0, 'lib')\nimport zzz_none",
        "import os\nos.system('pip install zzz-none')\nimport zzz_none",
        "if something():\n    import zzz_none",
        "import httpx.zzz_none",
    ],
)
def test_uncertain_import_is_warning(tmp_path: Path, text: str) -> None:
    (found,) = look(text, tmp_path)
    assert (found.sure, "zzz_none" in found.text) == (False, True)


def test_import_of_uncertain_import_is_warning(tmp_path: Path) -> None:
    (tmp_path / "plots.py").write_text("import zzz_none")
    (found,) = look("def plot():\n    import plots", tmp_path)
    assert (found.where, found.sure) == ("plots.py", False)


def test_excluded_module_is_named_with_ignore_rule(
    tmp_path: Path,
) -> None:
    (tmp_path / "train.py").write_text("import helper")
    (tmp_path / "helper.py").write_text("")
    files = [SnapshotFile("train.py", "0" * 64, 13)]
    submission = JobSubmission(ScriptEntry("train.py"), interpreter=sys.executable, files=files)
    (found,) = missing_of_script(tmp_path / "train.py", submission, os.environ)
    assert (found.where, found.line, found.sure) == ("train.py", 1, True)
    assert found.text == (
        "`helper` is helper.py, which is not sent with the job: to send it, add a line "
        "`!helper.py` to .benchpoolignore"
    )


def test_unresponsive_python_reports_no_import(tmp_path: Path) -> None:
    piece = Piece("a", ast.parse("import zzz_none"), "")
    assert missing([piece], tmp_path, str(tmp_path / "none"), os.environ) == []


# --------------------------------------------------------------------------- of entries


def submitted(entry: ModuleEntry | NotebookEntry) -> JobSubmission:
    return JobSubmission(entry, interpreter=sys.executable)


def test_module_run_by_name_is_found_and_read(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "__init__.py").write_text("")
    (tmp_path / "part" / "__main__.py").write_text("import zzz_none")
    (tmp_path / "part" / "train.py").write_text("x = 1\nimport zzz_other")
    named = {
        module: sure(missing_of(tmp_path, submitted(ModuleEntry(module)), os.environ))
        for module in ("part", "part.train", "http.server", "zzz_gone", "part.gone")
    }
    assert named == {
        "part": ["part/__main__.py:1 zzz_none"],
        "part.train": ["part/train.py:2 zzz_other"],
        "http.server": [],
        "zzz_gone": ["-m zzz_gone:0 zzz_gone"],
        "part.gone": ["-m part.gone:0 part.gone"],
    }


def test_notebook_cells_are_read_with_their_numbers(tmp_path: Path) -> None:
    book = v4.new_notebook(
        cells=[
            v4.new_markdown_cell("import nothing"),
            v4.new_code_cell("%matplotlib inline\nimport json"),
            v4.new_code_cell("x = 1\nimport zzz_none"),
        ]
    )
    (tmp_path / "book.ipynb").write_text(writes(book))
    submission = submitted(NotebookEntry("0" * 64, "book.ipynb"))
    found = missing_of(tmp_path, submission, os.environ, "book.ipynb")
    assert sure(found) == ["cell 3:2 zzz_none"]
    book.cells.insert(1, v4.new_code_cell("!make the-module"))
    (tmp_path / "book.ipynb").write_text(writes(book))
    (perhaps,) = missing_of(tmp_path, submission, os.environ, "book.ipynb")
    assert (perhaps.where, perhaps.sure) == ("cell 4", False)


# --------------------------------------------------------------------------- on a cluster


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A Python with a module of its own."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "env" / "lib").glob("python3*/site-packages")
    (site / "since_then.py").write_text("")
    return tmp_path / "env" / "bin" / "python"


@pytest.mark.parametrize(
    ("shared", "later", "expected"),
    [
        (False, 0, None),
        (False, -9, (False, "was installed after this server started, and the job starts from")),
        (True, -9, (False, "was installed after this server started, and the job starts from")),
    ],
)
def test_package_installed_in_running_container_is_missing(
    environment: Path, tmp_path: Path, shared: bool, later: float, expected: tuple[bool, str] | None
) -> None:
    made = next(environment.parents[1].rglob("since_then.py")).stat().st_mtime
    began = Unseen("/home/joe", shared, made + later if later else made + 9)
    text = "import json, since_then"
    piece = Piece("a", ast.parse(text), text)
    environ = job_environ(os.environ, {})
    found = missing([piece], tmp_path, str(environment), environ, unseen=began)
    assert [each.sure for each in found] == ([] if expected is None else [expected[0]])
    assert expected is None or f"`since_then` {expected[1]}" in found[0].text


def test_package_in_unmounted_home_is_missing(tmp_path: Path) -> None:
    (tmp_path / "home" / "lib").mkdir(parents=True)
    (tmp_path / "home" / "lib" / "mine_alone.py").write_text("")
    piece = Piece("a", ast.parse("import mine_alone"), "")
    environ = job_environ(os.environ, {"PYTHONPATH": str(tmp_path / "home" / "lib")})
    own, seen = (Unseen(str(tmp_path / "home"), shared) for shared in (False, True))
    assert missing([piece], tmp_path, sys.executable, environ, unseen=seen) == []
    (found,) = missing([piece], tmp_path, sys.executable, environ, unseen=own)
    assert found.sure
    assert found.text == (
        "`mine_alone` is installed in your home, which jobs here do not see: install it within the "
        "job, or ask for an image that has it"
    )


def test_python_in_unmounted_home_is_rejected(environment: Path, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "BENCHPOOL_IMAGE": "lab/notebook:1"}
    piece = Piece("a", ast.parse("x = 1"), "")
    (found,) = missing([piece], tmp_path, str(environment), environ, unseen=unseen_here(environ))
    assert found.text.endswith("is in your home, which jobs here do not see: choose one that is "
                               "in the image")  # fmt: skip
    there = unseen_here(environ | {"BENCHPOOL_HOME": "shared"})
    assert missing([piece], tmp_path, str(environment), environ, unseen=there) == []


def test_container_started_before_this_process() -> None:
    began = unseen_here({"BENCHPOOL_IMAGE": "lab/notebook:1"}).since
    assert began is not None
    assert began <= time.time()


def test_python_without_kernel_is_reported_before_upload(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "book.ipynb").write_text(writes(v4.new_notebook(cells=[v4.new_code_cell("x = 1")])))
    entry = NotebookEntry("0" * 64, "book.ipynb")
    submission = JobSubmission(entry, interpreter=str(environment))
    found = missing_of(tmp_path, submission, os.environ, "book.ipynb")
    assert sure(found) == ["book.ipynb:0 ipykernel"]
