"""Command that submits the same job as a draft."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from benchpool import drafts
from benchpool_scheduler.contract import JobSubmission, ScriptEntry
from benchpool_scheduler.contract.options import words_of


def command(draft: drafts.Draft, more: Sequence[str] = ()) -> str:
    """Return the equivalent command: for a terminal, or for cells a cell magic.

    ``more`` are words that its options do not cover.
    """
    submission, entry = draft.submission, draft.submission.entry
    code = entry.path if isinstance(entry, ScriptEntry) else _path_of(submission)
    # The number of GPUs is always written.
    given = {name: each for name, each in submission.parameters.items() if name in draft.given}
    words = words_of(
        structs.replace(submission, parameters=given), {"gpus": None, "name": drafts.name_of(code)}
    )
    words += more
    if isinstance(entry, ScriptEntry):
        return shlex.join(["benchpool", "submit", *words, entry.path, *entry.args])
    if draft.submission.source and draft.submission.source.kind == "notebook":
        return shlex.join(["benchpool", "submit", *words, Path(code).name])
    words += [word for name in draft.values.names for word in ("--send", name)]
    words += [word for name in draft.keep.names or () for word in ("--keep", name)]
    return shlex.join(["%%train", *words, *(["--pickle"] if draft.keep.pickle else [])])


def _path_of(submission: JobSubmission) -> str:
    return (submission.source.path if submission.source else None) or "cells"
