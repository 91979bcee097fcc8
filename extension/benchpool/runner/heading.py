"""First cell of an executed copy, with its job, attempt and start time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import nbformat

CELL = "benchpool-executed-copy"
"""ID of that cell."""


def heading_of(environment: Mapping[str, str], path: object, begun: datetime) -> str | None:
    """Return the text of the cell in Markdown, or None outside a job.

    Args:
        path: The submitter's notebook, if known.
        begun: Start of this attempt, with a time zone.

    >>> from datetime import timezone
    >>> job = {"BENCHPOOL_JOB_ID": "3fk2hq7ab", "BENCHPOOL_JOB_NAME": "tra`in"}
    >>> begun = datetime(2026, 11, 23, 2, 40, tzinfo=timezone.utc)
    >>> heading_of(job, "a/train.ipynb", begun)  # doctest: +ELLIPSIS
    '**Executed copy** of `a/train.ipynb`: job `train` (`3fk2hq7a`), attempt 1, started 2026-...'
    """
    job = environment.get("BENCHPOOL_JOB_ID")
    if not job:
        return None
    of = f" of {_code(path)}" if isinstance(path, str) and path else ""
    name = _code(environment.get("BENCHPOOL_JOB_NAME") or "job")
    attempt = environment.get("BENCHPOOL_ATTEMPT", "1")
    time = begun.strftime("%Y-%m-%d %H:%M %Z")
    return (
        f"**Executed copy**{of}: job {name} ({_code(job[:8])}), attempt {attempt}, started {time}."
    )


def with_heading(notebook: nbformat.NotebookNode, text: str) -> nbformat.NotebookNode:
    """Return a copy of a notebook with that cell in front."""
    cell = nbformat.v4.new_markdown_cell(text, id=CELL)
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        del cell["id"]  # cells have IDs since 4.5
    cells = [each for each in notebook.cells if each.get("id") != CELL]
    return nbformat.NotebookNode({**notebook, "cells": [cell, *cells]})


def _code(text: str) -> str:
    plain = "".join(sign for sign in text if sign.isprintable() and sign != "`")
    return f"`{plain or '?'}`"
