"""Reading of the notebook file that a job runs: repairs small faults, rejects the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat

from benchpool.runner.interpreter import CannotStart

FORMAT = 4


def read(path: Path) -> nbformat.NotebookNode:
    """Return a notebook; an older format is converted to format 4.

    Metadata that is not an object counts as empty, and tags that are not a list of strings as none,
    since the code that runs the cells expects both.

    Raises:
        CannotStart: The file cannot be read as a notebook.
    """
    try:
        return nbformat.reads(json.dumps(mended(json.loads(path.read_bytes()))), as_version=FORMAT)
    except RecursionError as bad:
        raise CannotStart(f"{path} cannot be read as a notebook: it is nested too deeply") from bad
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        nbformat.ValidationError,
    ) as bad:
        reason = str(bad).partition("\n")[0]
        raise CannotStart(f"{path} cannot be read as a notebook: {reason}") from bad


def mended(book: Any) -> Any:
    """Return a notebook whose metadata are objects and whose tags are strings.

    >>> mended({"metadata": None, "cells": [{"metadata": {"tags": "a", "mine": 1}}]})
    {'metadata': {}, 'cells': [{'metadata': {'mine': 1}}]}
    """
    if not isinstance(book, dict):
        return book
    if not isinstance(book.get("metadata"), dict):
        book = {**book, "metadata": {}}
    if isinstance(book.get("cells"), list):
        book = {**book, "cells": [_cell(each) for each in book["cells"]]}
    return book


def _cell(cell: Any) -> Any:
    if not isinstance(cell, dict):
        return cell
    metadata = cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    tags = metadata.get("tags")
    if not isinstance(tags, list) or not all(isinstance(each, str) for each in tags):
        kept = [each for each in tags if isinstance(each, str)] if isinstance(tags, list) else []
        metadata = {name: value for name, value in metadata.items() if name != "tags"}
        metadata |= {"tags": kept} if kept else {}
    return {**cell, "metadata": metadata}
