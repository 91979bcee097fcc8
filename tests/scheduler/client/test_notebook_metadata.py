"""Metadata of a notebook file: the entries sent with a job, and their size limit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.cli.notebooks import cells_of
from benchpool_scheduler.client import notebooks
from benchpool_scheduler.client.notebooks.metadata import MOST_BYTES
from benchpool_scheduler.errors import InvalidInput, TooLarge


def written(folder: Path, metadata: object, *cells: object) -> Path:
    code: dict[str, Any] = {
        "cell_type": "code",
        "source": "1",
        "outputs": [],
        "execution_count": None,
    }
    made = [{**code, "id": f"c{n}", "metadata": each} for n, each in enumerate(cells)]
    path = folder / "book.ipynb"
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": made}
    path.write_text(json.dumps(book))
    return path


def sent(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cells_of(path))
    return found


def nested(levels: int) -> object:
    found: object = 1
    for _ in range(levels):
        found = [found]
    return found


@pytest.mark.parametrize("cell", [None, [], "x", {"tags": "abc"}, {"tags": [3]}])
def test_malformed_metadata_is_ignored(tmp_path: Path, cell: object) -> None:
    (made,) = sent(written(tmp_path, {}, cell))["cells"]
    assert made["metadata"] == {"benchpool": {"number": 1}}


def test_metadata_unreadable_by_jupyterlab_is_dropped(tmp_path: Path) -> None:
    own = {"odd": float("nan"), "ends": [float("inf"), 1.5], "deep": nested(101)}
    made = sent(written(tmp_path, own | {"fits": nested(100)}, own))
    assert made["metadata"]["odd"] is None
    assert made["metadata"]["ends"] == [None, 1.5]
    assert made["metadata"]["fits"] == nested(100)
    assert "deep" not in made["metadata"]
    assert made["cells"][0]["metadata"].keys() == {"odd", "ends", "benchpool"}


def test_excessively_nested_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "book.ipynb"
    path.write_text('{"metadata": {"deep": ' + "[" * 200_000 + "]" * 200_000 + '}, "cells": []}')
    with pytest.raises(InvalidInput, match=r"cannot be read as a notebook \(RecursionError\)"):
        notebooks.read(path)


@pytest.mark.parametrize(
    ("own", "kernel", "language"),
    [
        ({}, ("python3", "Python 3"), {"name": "python"}),
        ({"kernelspec": {"name": "torch"}}, ("torch", "torch"), {"name": "python"}),
        ({"kernelspec": {"name": 3}}, ("python3", "Python 3"), {"name": "python"}),
        (
            {"kernelspec": {"name": "a", "display_name": "A"}, "language_info": {"version": "3"}},
            ("a", "A"),
            {"name": "python"},
        ),
        (
            {"language_info": {"name": "python", "version": "3.9.1"}},
            ("python3", "Python 3"),
            {"name": "python", "version": "3.9.1"},
        ),
    ],
)
def test_notebook_always_names_kernel_and_language(
    tmp_path: Path, own: object, kernel: tuple[str, str], language: object
) -> None:
    made = sent(written(tmp_path, own))["metadata"]
    assert (made["kernelspec"]["name"], made["kernelspec"]["display_name"]) == kernel
    assert made["language_info"] == language


def test_notebook_format_three_keeps_metadata(tmp_path: Path) -> None:
    code = {"cell_type": "code", "input": ["1"], "language": "python", "outputs": []}
    cell = {**code, "collapsed": True, "metadata": {"slideshow": {"slide_type": "slide"}}}
    book = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "old", "title": "Diffusion", "signature": "sha256:1"},
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps(book))
    made = sent(path)
    assert made["metadata"]["title"] == "Diffusion"
    assert made["metadata"].keys().isdisjoint({"signature", "orig_nbformat"})
    kept = {"collapsed": True, "slideshow": {"slide_type": "slide"}, "benchpool": {"number": 1}}
    assert made["cells"][0]["metadata"] == kept


def test_oversized_metadata_is_rejected_with_largest_entry(tmp_path: Path) -> None:
    large = "x" * (MOST_BYTES + 1)
    with pytest.raises(TooLarge) as refused:
        notebooks.read(written(tmp_path, {"plots": large, "title": "a"}))
    assert refused.value.message == (
        "The metadata of the notebook have 1025 KiB; the limit is 1024 KiB. Remove `plots` of the "
        "notebook (1025 KiB), in JupyterLab under Property Inspector, Advanced Tools."
    )
    assert refused.value.field == "metadata"
    half = "x" * (MOST_BYTES // 2)
    with pytest.raises(TooLarge, match=r"Remove `state` of cell 2 \(513 KiB\)") as refused:
        notebooks.read(written(tmp_path, {"plots": half}, {}, {"state": f"{half}x"}))
    assert (refused.value.field, refused.value.numbers["limit"]) == ("cells", MOST_BYTES)
    small = [{"vscode": "x" * (MOST_BYTES // 40)}] * 40
    with pytest.raises(TooLarge, match=r"Remove `vscode` of 40 cells \(1025 KiB\)"):
        notebooks.read(written(tmp_path, {"plots": half}, *small))
    notebooks.read(written(tmp_path, {"widgets": large, "plots": half}, {"execution": large}))
