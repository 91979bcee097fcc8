"""Code that a job was sent with, the place of its failure, and later changes of the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission, State
from benchpool_scheduler.errors import NotFound
from benchpool_support.dialog import body, made, new_key
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served
from benchpool_support.waiting import until

pytestmark = pytest.mark.slow


def cells_of(path: Path) -> list[dict[str, Any]]:
    """Return a notebook's cells as the page sends them, all selected."""
    book = nbformat.read(path, as_version=4)
    return [
        {"id": each.id, "cell_type": each.cell_type, "source": each.source, "selected": True}
        for each in book.cells
    ]


def ended(server: NotebookServer, job: str) -> dict[str, Any]:
    """Wait until a job has ended, and return it."""
    found: dict[str, Any] = until(
        lambda: made(server.page.get(f"benchpool/api/v1/jobs/{job}"))["job"],
        f"{job} has ended",
        holds=lambda found: found["ended"] is not None,
    )
    return found


def test_failed_cell_is_found_with_later_changes(server: NotebookServer) -> None:
    path = server.root / "deep" / "book.ipynb"
    path.parent.mkdir()
    texts = ["rate = 1", "notes = {}\n%pip install x\nprint(notes['a'])", "print('fine')"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in texts])
    book.cells.insert(1, nbformat.v4.new_markdown_cell("# Words"))
    nbformat.write(book, path)
    cells = cells_of(path)
    cells[0]["selected"] = cells[3]["selected"] = False
    asked = body("cells", "deep/book.ipynb", cells=cells, key=new_key())
    sent = made(server.page.post("benchpool/send", json=asked))
    job = ended(server, sent["id"])
    assert job["state"] == State.FAILED
    assert job["reason"]["text"] == "book failed in cell 3 with KeyError: 'a' (line 3)."
    assert job["reason"]["numbers"] == {"exit_code": 1, "cell": 3, "line": 3}
    answer = made(server.page.get("benchpool/sent", params={"job": job["id"]}))
    failed = book.cells[2].id
    assert (answer["path"], answer["send"]) == ("deep/book.ipynb", "cells")
    assert (answer["cell"], answer["line"]) == (failed, 3)
    assert failed in answer["selected"]
    assert [each["number"] for each in answer["cells"]] == [2, 3], "the prose before it goes along"
    assert answer["difference"] == ""

    book.cells[2].source = texts[1].replace("'a'", "'b'")
    book.cells.insert(0, nbformat.v4.new_code_cell("new = 1"))
    nbformat.write(book, path)
    answer = made(server.page.get("benchpool/sent", params={"job": job["id"]}))
    assert answer["difference"] == (
        "=== cell 4, which was cell 3\n"
        "@@ -1,3 +1,3 @@\n"
        " notes = {}\n"
        " pass  # left out by benchpool: %pip install x\n"
        "-print(notes['a'])\n"
        "+print(notes['b'])\n"
    )
    path.unlink()
    answer = made(server.page.get("benchpool/sent", params={"job": job["id"]}))
    assert (answer["path"], answer["difference"]) == (None, None)


def test_script_is_found_by_failed_file(server: NotebookServer) -> None:
    folder = server.root / "exp"
    folder.mkdir()
    (folder / "train.py").write_text("import part\npart.fit()\n")
    (folder / "part.py").write_text("def fit():\n    raise ValueError('no data')\n")
    asked = body("script", "exp/train.py", key=new_key())
    job = ended(server, made(server.page.post("benchpool/send", json=asked))["id"])
    assert job["reason"]["text"] == "train failed with ValueError: no data (part.py, line 2)."
    answer = made(server.page.get("benchpool/sent", params={"job": job["id"]}))
    assert (answer["path"], answer["origin"]) == ("exp/part.py", "exp/train.py")
    assert (answer["send"], answer["line"]) == ("script", 2)
    assert (answer["text"], answer["difference"]) == ("import part\npart.fit()\n", "")
    (folder / "train.py").write_text("import part\npart.fit(1)\n")
    answer = made(server.page.get("benchpool/sent", params={"job": job["id"]}))
    assert answer["difference"].splitlines()[-2:] == ["-part.fit()", "+part.fit(1)"]


def test_code_of_invisible_job_is_hidden(server: NotebookServer, pool: Served) -> None:
    with pool.client("joe") as joe:
        job = joe.submit(JobSubmission(CommandEntry(["true"])))
        assert joe.code(job.id).command == ["true"]
    assert server.page.get("benchpool/sent", params={"job": job.id}).status_code == 404
    with pool.client("susan") as susan, pytest.raises(NotFound):
        susan.code(job.id)


def test_file_named_in_log_is_found_in_source_folder(server: NotebookServer, pool: Served) -> None:
    folder = server.root / "named"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "deep.py").write_text("def f():\n    raise ValueError('here')\n")
    (folder / "pkg" / "__init__.py").write_text("")
    (folder / "train.py").write_text("from pkg.deep import f\nf()\n")
    asked = body("script", "named/train.py", kernel_name=None, key=new_key())
    job = ended(server, made(server.page.post("benchpool/send", json=asked))["id"])
    with pool.client("susan") as client:
        log = client.log(job["id"], offset=0).data.decode()
    printed = [line.split('"')[1] for line in log.splitlines() if line.startswith('  File "')]
    found = [
        made(server.page.get("benchpool/sent", params={"job": job["id"], "file": each}))["path"]
        for each in [
            *printed,
            "~/x/pkg/deep.py",
            "/etc/hostname",
            "/a/../named/train.py",
            "",
            "named/train.py",
        ]
    ]
    assert found == [
        "named/train.py",
        "named/pkg/deep.py",
        "named/pkg/deep.py",
        None,
        None,
        None,
        "named/train.py",
    ]
