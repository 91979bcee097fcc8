"""The example notebook: copied into new homes and from the Launcher, and never overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from benchpool.cells import NotebookCell, choose
from benchpool.server import example
from benchpool_scheduler.errors import Unavailable
from benchpool_support.notebook_server import NotebookServer


def test_new_home_gets_example_and_used_home_does_not(tmp_path: Path) -> None:
    new, used = tmp_path / "new", tmp_path / "used"
    (new / ".ipython").mkdir(parents=True)
    (new / "lost+found").mkdir()
    used.mkdir()
    (used / "paper.tex").touch()
    assert example.welcome(new) is True
    assert nbformat.read(new / example.NAME, 4)["cells"][0]["source"].startswith("# Train")
    assert example.welcome(used) is False
    assert [each.name for each in used.iterdir()] == ["paper.tex"]


def test_changed_example_is_kept(tmp_path: Path) -> None:
    (tmp_path / example.NAME).write_text("mine")
    assert example.put(tmp_path) == example.NAME
    assert (tmp_path / example.NAME).read_text() == "mine"


def test_unwritable_home_is_reported_and_server_continues(
    tmp_path: Path,
) -> None:
    gone = tmp_path / "gone"
    assert example.welcome(gone) is False
    with pytest.raises(Unavailable, match=r"cannot be written .*: No such file or directory"):
        example.put(gone)


@pytest.mark.slow
def test_example_cells_run_and_selection_includes_needed_cells(tmp_path: Path) -> None:
    example.put(tmp_path)
    book = nbformat.read(tmp_path / example.NAME, 4)
    cells = [
        NotebookCell(each["id"], each["source"], each["id"] == "train", each["cell_type"], None)
        for each in book["cells"]
    ]
    taken = [each.id for each in choose(cells).cells if each.included]
    assert taken == ["data", "model", "train"]
    ran = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    ran.execute()
    printed = "".join(output["text"] for output in book["cells"][4]["outputs"])
    assert float(printed.rpartition(":")[2]) < 0.02, printed


@pytest.mark.slow
def test_page_receives_example_path(server: NotebookServer) -> None:
    answer = server.page.post("benchpool/example", json={})
    assert answer.status_code == 200, answer.text
    path = answer.json()["notebook"]
    assert json.loads((server.root / path).read_text())["nbformat"] == 4
    assert server.anonymous().post("benchpool/example", json={}).status_code == 403
