"""Metadata of an open notebook are sent, saved or not, up to a size limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from benchpool_scheduler.client.notebooks.metadata import MOST_BYTES
from benchpool_support.dialog import body, made, new_key, write_notebook
from benchpool_support.notebook_server import NotebookServer
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

SPEC = {"name": "python3", "display_name": "Python of susan", "language": "python"}
LIVE = {"kernelspec": SPEC, "title": "Diffusion", "widgets": {"state": {}}, "benchpool": {"x": 1}}
OF_CELL = {"slideshow": {"slide_type": "slide"}, "tags": ["old"], "execution": {"x": "now"}}


def page(kind: str, **more: Any) -> dict[str, Any]:
    """Return the request of a page for an open notebook with unsaved changes."""
    asked = body(kind, cells=None)
    cell = {"id": "a", "cell_type": "code", "source": "print(6 * 7)", "execution_count": None}
    cells = [{**cell, "selected": True, "tags": ["new"], "metadata": OF_CELL, **more}]
    return {**asked, "cells": cells, "metadata": LIVE}


def executed(pool: Served, id_: str) -> dict[str, Any]:
    """Return the executed copy of a job, after it succeeded."""
    with pool.client("susan") as client:
        assert client.wait(id_).state == "succeeded"
        folder = client.submission(id_).output_dir
    (copy,) = Path(str(folder)).glob("*.ipynb")
    found: dict[str, Any] = json.loads(copy.read_text())
    return found


@pytest.mark.parametrize("kind", ["cells", "notebook"])
def test_metadata_of_open_notebook_is_kept_in_executed_copy(
    server: NotebookServer, pool: Served, kind: str
) -> None:
    write_notebook(server.root / "book.ipynb", "print('as saved')")
    sent = made(server.page.post("benchpool/send", json={**page(kind), "key": new_key()}))
    book = executed(pool, sent["id"])
    assert (book["metadata"]["kernelspec"], book["metadata"]["title"]) == (SPEC, "Diffusion")
    assert book["metadata"]["benchpool"]["path"] == "book.ipynb"
    cell = book["cells"][1]
    assert (cell["source"], cell["metadata"]["tags"]) == (["print(6 * 7)"], ["new"])
    assert cell["metadata"]["slideshow"] == {"slide_type": "slide"}
    assert "x" not in cell["metadata"]["execution"]
    nbformat.validate(book)


def test_metadata_of_notebook_file_is_kept_in_executed_copy(
    server: NotebookServer, pool: Served
) -> None:
    file = server.root / "book.ipynb"
    write_notebook(file, "print(6 * 7)")
    saved = json.loads(file.read_text())
    saved["metadata"]["title"] = saved["cells"][0]["metadata"]["title"] = "Diffusion"
    file.write_text(json.dumps(saved))
    asked = {**body("notebook", cells=None), "key": new_key()}
    sent = made(server.page.post("benchpool/send", json=asked))
    book = executed(pool, sent["id"])
    assert book["metadata"]["title"] == book["cells"][1]["metadata"]["title"] == "Diffusion"


@pytest.mark.parametrize("verb", ["prepare", "send"])
def test_too_large_metadata_is_rejected_with_field(server: NotebookServer, verb: str) -> None:
    large = {"plots": "x" * MOST_BYTES}
    write_notebook(server.root / "book.ipynb", "1")
    for asked, field, of in (
        ({**page("cells"), "metadata": large}, "metadata", "the notebook"),
        (page("notebook", metadata=large), "cells", "cell 1"),
    ):
        answer = server.page.post(f"benchpool/{verb}", json={**asked, "key": new_key()})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["field"]) == (413, "too-large", field)
        assert f"Remove `plots` of {of} (1025 KiB)" in error["message"]
    asked = {**page("cells"), "metadata": {"widgets": "x" * MOST_BYTES}}
    assert server.page.post("benchpool/prepare", json=asked).is_success


def test_deeply_nested_metadata_is_rejected(server: NotebookServer) -> None:
    write_notebook(server.root / "book.ipynb", "1")
    text = json.dumps({**page("cells"), "metadata": {"deep": "HERE"}})
    deep = text.replace('"HERE"', "[" * 100_000 + "]" * 100_000)
    answer = server.page.post("benchpool/prepare", content=deep)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith("The request cannot be read: ")
