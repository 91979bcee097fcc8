"""The example notebook: in a new home by itself, from the Launcher anywhere; never written over."""

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


def test_a_new_home_has_it_and_a_home_in_use_is_left_alone(tmp_path: Path) -> None:
    new, used = tmp_path / "new", tmp_path / "used"
    (new / ".ipython").mkdir(parents=True)
    (new / "lost+found").mkdir()
    used.mkdir()
    (used / "paper.tex").touch()
    assert example.welcome(new) is True
    assert nbformat.read(new / example.NAME, 4)["cells"][0]["source"].startswith("# Train")
    assert example.welcome(used) is False
    assert [each.name for each in used.iterdir()] == ["paper.tex"]


def test_what_a_user_changed_in_it_stays(tmp_path: Path) -> None:
    (tmp_path / example.NAME).write_text("mine")
    assert example.put(tmp_path) == example.NAME
    assert (tmp_path / example.NAME).read_text() == "mine"


def test_a_home_that_cannot_be_written_is_told_by_the_card_and_ends_no_server(
    tmp_path: Path,
) -> None:
    gone = tmp_path / "gone"
    assert example.welcome(gone) is False
    with pytest.raises(Unavailable, match=r"cannot be written .*: No such file or directory"):
        example.put(gone)


@pytest.mark.slow
def test_its_cells_run_and_the_cell_to_send_takes_all_it_needs_along(tmp_path: Path) -> None:
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
    said = "".join(output["text"] for output in book["cells"][4]["outputs"])
    assert float(said.rpartition(":")[2]) < 0.02, said


@pytest.mark.slow
def test_the_page_is_told_where_it_is(server: NotebookServer) -> None:
    answer = server.page.post("benchpool/example", json={})
    assert answer.status_code == 200, answer.text
    path = answer.json()["notebook"]
    assert json.loads((server.root / path).read_text())["nbformat"] == 4
    assert server.stranger().post("benchpool/example", json={}).status_code == 403
