"""What JupyterLab's dialog asks of the notebook server."""

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
    """Return what the dialog sends: five cells, the fourth selected; ``more`` goes over it."""
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
    """Return a key of a sending of its own."""
    return uuid.uuid4().hex


def made(answer: httpx.Response) -> dict[str, Any]:
    """Return a good answer."""
    found: dict[str, Any] = answer.json()
    assert answer.is_success, found
    return found


def prepared(
    page: httpx.Client,
    asked: dict[str, Any],
    holds: Callable[[dict[str, Any]], object] = lambda said: said["kernel"]["asked"],
) -> dict[str, Any]:
    """Return what the dialog is told once it holds: without it, once the kernel has answered.

    A kernel is asked for less than a second, however slow the machine is, and the dialog goes on
    without it; it asks again with everything that is changed in it.
    """

    def said() -> dict[str, Any] | None:
        found = made(page.post("benchpool/prepare", json=asked))
        return found if holds(found) else None

    found = until(said, "the dialog is told")
    assert found is not None
    return found


def write_notebook(path: Path, *sources: str) -> None:
    """Write a notebook of these cells for the Python kernel, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [nbformat.v4.new_code_cell(each) for each in sources]
    kernel = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
