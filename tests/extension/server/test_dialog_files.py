"""The dialog lists the files that are not sent, in the words of the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool import drafts
from benchpool.cells import NotebookCell
from benchpool.drafts import JobOptions
from benchpool.kernel_environment import KernelEnvironment
from benchpool_scheduler.client import snapshot
from benchpool_support.dialog import body, prepared
from benchpool_support.notebook_server import NotebookServer

pytestmark = pytest.mark.slow


def test_excluded_files_of_script_are_listed(server: NotebookServer) -> None:
    folder = server.root / "scripts"
    folder.mkdir()
    (folder / "go.py").write_text("print(1)")
    (folder / "tab\tname.txt").write_text("x")
    (folder / "v\N{NO-BREAK SPACE}13.png").write_text("x")
    asked = body("script", "scripts/go.py", kernel_name=None)
    answer = prepared(server.page, asked, lambda it: it["preview"] and it["files"])
    assert answer["files"]["count"] == 2
    assert answer["files"]["left_out"] == [
        {"path": "tab\\tname.txt", "why": "a name with a control character"}
    ]
    texts = [each["text"] for each in answer["problems"] if each["level"] == "info"]
    assert texts == [f"{each}." for each in snapshot.survey(folder).sentences()]
    assert texts[0].endswith("left out: 1 × a name with a control character.")


def test_excluded_files_of_cells_are_reported_for_copied_folder(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.pyc").write_text("")
    cells = [NotebookCell("one", "print(1)", selected=True)]
    here = KernelEnvironment("lab/notebook:1", files_travel=True)
    draft = drafts.of_cells(
        cells, JobOptions(), kind="magic", folder=tmp_path, interpreter="python3", here=here
    )
    assert [(each.level, each.text) for each in draft.problems] == [
        ("info", "sent with the job: 0 files (0 bytes); left out: 1 × a cache")
    ]
