"""Imports of a draft that would fail in the job, asked of the Python that will run it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchpool.cells import CellChoice, Problem, magics
from benchpool.drafts import Draft
from benchpool.kernel_environment import KernelEnvironment
from benchpool_scheduler.client.imports import (
    MissingModule,
    Piece,
    job_environ,
    missing,
    missing_of_script,
    unchecked,
    unseen_here,
)


def checked(draft: Draft, script: Path | None, here: KernelEnvironment) -> Draft:
    """Return the draft with what is wrong with its imports among its problems.

    What runs in another image than this process cannot be asked for; then that is said.

    Args:
        script: The file of a script, None for cells.
    """
    return replace(draft, problems=in_order([*draft.problems, *problems(draft, script, here)]))


def problems(draft: Draft, script: Path | None, here: KernelEnvironment) -> list[Problem]:
    """Return what is wrong with the imports of a draft. It takes as long as its Python answers."""
    submission = draft.submission
    if submission.image is not None and submission.image != here.image:
        return [Problem("warning", unchecked(submission.image))]
    if submission.interpreter is None:
        return []
    if script is not None:
        return [_of_file(each) for each in missing_of_script(script, submission, os.environ)]
    chosen = [each for each in draft.selection.cells if each.included] if draft.selection else []
    reads = {each.id: magics.read(each.run) for each in chosen}
    trees = [(each, reads[each.id].tree) for each in chosen]
    pieces = [Piece(each.id, tree, each.run) for each, tree in trees if tree is not None]
    found = missing(
        pieces,
        Path(submission.working_dir or "."),
        submission.interpreter,
        job_environ(os.environ, submission.env),
        sent=frozenset(each.path for each in submission.files) or None,
        loose=any(read.opaque or read.tree is None for read in reads.values()) or _shell(chosen),
        unseen=unseen_here(os.environ),
    )
    return [
        Problem(_level(each), each.text, each.where, each.line)
        if each.where in reads
        else _of_file(each)
        for each in found
    ]


def _shell(cells: Sequence[CellChoice]) -> bool:
    """Tell whether a cell runs commands of the shell, which may make files."""
    return any(line.lstrip().startswith("!") for cell in cells for line in cell.run.split("\n"))


def _of_file(found: MissingModule) -> Problem:
    return Problem(_level(found), f"{found.where}, line {found.line}: {found.text}")


def _level(found: MissingModule) -> magics.Level:
    return "error" if found.sure else "warning"


def in_order(found: list[Problem]) -> tuple[Problem, ...]:
    """Return problems with the errors first."""
    return tuple(sorted(found, key=lambda each: each.level != "error"))
