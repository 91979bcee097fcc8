"""Construction of a job's notebook from selected cells. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.client.notebooks.metadata import Metadata, named
from benchpool_scheduler.client.notebooks.reading import SKIPPED, Attachments

FORMAT, MINOR = 4, 5
"""Version of the notebook format. Cells have IDs since 4.5."""


@dataclass(frozen=True, slots=True)
class JobCell:
    """Cell of a job. ``number``: its position in the sender's notebook, from 1."""

    id: str
    number: int
    source: str
    cell_type: str = "code"
    tags: tuple[str, ...] = ()
    attachments: Attachments = field(default_factory=dict)
    metadata: Metadata = field(default_factory=dict)

    @property
    def is_run(self) -> bool:
        """Whether a job runs this cell: it is code without a tag that skips it."""
        return self.cell_type == "code" and SKIPPED not in self.tags


def build(
    cells: Iterable[JobCell],
    *,
    path: str | None = None,
    keep: Mapping[str, object] | None = None,
    modules: Mapping[str, object] | None = None,
    metadata: Metadata | None = None,
) -> bytes:
    """Return a notebook of these cells, without outputs.

    Equal cells give equal bytes, so that sending them again uploads nothing.

    Args:
        keep: Values that the runner keeps after the cells.
        modules: Sources of the user's own modules that the cells import (``OwnSources.metadata``).
        metadata: Metadata of the source notebook, see ``lasting``.

    >>> made = json.loads(build([JobCell("a", 3, "1 + 1")], path="train.ipynb"))
    >>> made["cells"][0]["metadata"], made["metadata"]["benchpool"]
    ({'benchpool': {'number': 3}}, {'path': 'train.ipynb'})
    """
    notebook = {
        "nbformat": FORMAT,
        "nbformat_minor": MINOR,
        "metadata": {
            **named(metadata or {}),
            "benchpool": {"path": path, **({"keep": keep} if keep else {}), **(modules or {})},
        },
        "cells": [_cell(each) for each in cells],
    }
    # ASCII escapes, because a cell may contain half a surrogate pair, which UTF-8 cannot encode.
    return json.dumps(notebook, indent=1).encode()


def _cell(cell: JobCell) -> dict[str, object]:
    made: dict[str, object] = {
        "cell_type": cell.cell_type,
        "id": cell.id,
        "metadata": {
            **cell.metadata,
            **({"tags": list(cell.tags)} if cell.tags else {}),
            "benchpool": {"number": cell.number},
        },
        "source": cell.source,
    }
    if cell.cell_type == "code":
        made |= {"execution_count": None, "outputs": []}
    elif cell.attachments:
        made["attachments"] = cell.attachments
    return made
