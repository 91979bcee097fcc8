"""A home with a link to another disk: files there are sent like all files."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from benchpool.server.served_folder import ServedFolder
from benchpool_scheduler.contract import State
from benchpool_scheduler.errors import NotFound
from benchpool_support.dialog import CELLS, body, made, new_key, write_notebook
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served


@pytest.fixture
def disk(server: NotebookServer, tmp_path: Path) -> Path:
    """Return another disk, linked as ``work`` in the home."""
    link = server.root / "work"
    link.unlink(missing_ok=True)
    link.symlink_to(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["cells", "notebook"])
def test_notebook_behind_link_is_sent_and_results_return(
    server: NotebookServer, pool: Served, disk: Path, kind: str
) -> None:
    write_notebook(disk / "book.ipynb", *CELLS[:-1])
    asked = body(kind, "work/book.ipynb") | ({"cells": None} if kind == "notebook" else {})
    assert made(server.page.post("benchpool/prepare", json=asked))["working_dir"] == "work"
    job = made(server.page.post("benchpool/send", json={**asked, "key": new_key()}))
    with pool.client("susan") as client:
        client.wait(job["id"])
        assert client.submission(job["id"]).working_dir == str(disk)
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    assert result["notebook"].startswith("work/benchpool-results/book-")
    assert nbformat.read(server.root / result["notebook"], as_version=4).cells


@pytest.mark.slow
def test_script_behind_link_is_sent_and_results_return(
    server: NotebookServer, pool: Served, disk: Path
) -> None:
    (disk / "go.py").write_text("import lib\nopen('new', 'w').write(lib.TEXT)")
    (disk / "lib.py").write_text("TEXT = 'of the other disk'")
    asked = body("script", "work/go.py", key=new_key(), kernel_name=None)
    job = made(server.page.post("benchpool/send", json=asked))
    with pool.client("susan") as client:
        assert client.wait(job["id"]).state is State.SUCCEEDED
    result = made(server.page.get("benchpool/result", params={"job": job["id"]}))
    (new,) = [each for each in result["files"] if each.endswith("/new")]
    assert (server.root / new).read_text() == "of the other disk"


def test_files_behind_links_keep_page_paths(tmp_path: Path) -> None:
    root, disk = tmp_path / "home", tmp_path / "disk"
    (disk / "deep").mkdir(parents=True)
    (root / "more").mkdir(parents=True)
    (disk / "deep" / "a.py").touch()
    (root / "work").symlink_to(disk)
    (root / "more" / "far").symlink_to(disk / "deep")
    served = ServedFolder(root)
    assert served.relative(disk / "deep" / "a.py") == "work/deep/a.py"
    assert served.file("more/far/a.py").resolve() == disk / "deep" / "a.py"
    assert served.relative(disk / "deep" / "a.py") == "more/far/a.py"
    assert served.relative(disk / "other.py") == "work/other.py"
    assert served.folder_of("work/deep/new.ipynb") == root / "work" / "deep"
    assert served.relative(tmp_path / "elsewhere") is None
    with pytest.raises(NotFound):
        served.file("work/none.py")
