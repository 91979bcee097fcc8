"""Requests of JupyterLab's dialog to the notebook server."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import nbformat

from benchpool_support.waiting import until

CELLS = ["import os", "x = 20", "unused = 1", "print(x + 1, os.getcwd())\nopen('made', 'w')", "y"]


def body(kind: str = "cells", path: str = "book.ipynb", **more: Any) -> dict[str, Any]:
    """Return a request body of the dialog: five cells, the fourth selected, updated by ``more``."""
    cells = [
        {
            "id": f"cell-{number}",
            "cell_type": "code",
            "source": text,
            "execution_count": None,
            "selected": number == 3,
        }
        for number, text in enumerate(CELLS)
    ]
    return {
        "kind": kind,
        "path": path,
        "cells": None if kind == "script" else cells,
        "kernel_name": "python3",
        "args": [],
        "gpus": 1,
        "workers": 1,
        "project": None,
        "name": None,
        "time_limit_s": None,
        **more,
    }


def new_key() -> str:
    """Return a new key for one submission."""
    return uuid.uuid4().hex


def made(answer: httpx.Response) -> dict[str, Any]:
    """Return the body of a successful response."""
    found: dict[str, Any] = answer.json()
    assert answer.is_success, found
    return found


def prepared(
    page: httpx.Client,
    asked: dict[str, Any],
    holds: Callable[[dict[str, Any]], object] = lambda answer: answer["kernel"]["asked"],
) -> dict[str, Any]:
    """Return the dialog's preparation as soon as ``holds`` is true of it.

    By default ``holds`` is true when the kernel has answered. The notebook server waits less than a
    second for a kernel, even on a slow machine, and then answers without it. The dialog repeats the
    request after each change by the user.
    """

    def prepare() -> dict[str, Any] | None:
        found = made(page.post("benchpool/prepare", json=asked))
        return found if holds(found) else None

    found = until(prepare, "the dialog is told")
    assert found is not None
    return found


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook of these cells for the Python kernel, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [nbformat.v4.new_code_cell(each) for each in sources]
    kernel = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
