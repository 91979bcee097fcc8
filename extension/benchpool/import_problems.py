"""Imports of a draft that would fail in the job, checked with the Python that will run it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from benchpool import code_problems
from benchpool.cells import CellChoice, Problem, magics
from benchpool.cells.left_out import Level
from benchpool.delta.difference import NOTHING, EnvironmentDelta
from benchpool.delta.difference import of as delta_of
from benchpool.delta.travelling import joined, problems_of
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
    """Return the draft with the problems of its imports and code added.

    Code that runs in another image than this process cannot be checked; this is reported.

    Args:
        script: File of the script, or None for cells.
    """
    delta = _delta(draft, script, here)
    found = [*draft.problems, *_problems(draft, script, here, delta)]
    found += code_problems.problems(draft, script, here)
    return replace(joined(draft, delta), problems=in_order(found))


def problems(draft: Draft, script: Path | None, here: KernelEnvironment) -> list[Problem]:
    """Return the problems of a draft's imports, and the packages that are sent with it.

    Takes as long as its Python and the package installer need to answer.
    """
    return _problems(draft, script, here, _delta(draft, script, here))


def _delta(draft: Draft, script: Path | None, here: KernelEnvironment) -> EnvironmentDelta:
    """Return the packages to send: only for cells and notebooks in the image of this server."""
    submission = draft.submission
    of_here = submission.image is not None and submission.image == here.image
    if script is not None or submission.interpreter is None or not of_here:
        return NOTHING
    return delta_of(submission.interpreter, unseen_here(os.environ))


def _problems(
    draft: Draft, script: Path | None, here: KernelEnvironment, delta: EnvironmentDelta
) -> list[Problem]:
    submission = draft.submission
    if submission.image is not None and submission.image != here.image:
        return [Problem("warning", unchecked(submission.image))]
    if submission.interpreter is None:
        return []
    if script is not None:
        return [_of_file(each) for each in missing_of_script(script, submission, os.environ)]
    chosen = [each for each in draft.selection.cells if each.is_run] if draft.selection else []
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
        unseen=replace(
            unseen_here(os.environ),
            carried=tuple(sorted(delta.modules)),
            refused=tuple(sorted(delta.missed)),
        ),
    )
    return problems_of(delta) + [
        Problem(_level(each), each.text, each.where, each.line)
        if each.where in reads
        else _of_file(each)
        for each in found
    ]


def _shell(cells: Sequence[CellChoice]) -> bool:
    """Return whether a cell runs shell commands, which may create files."""
    return any(line.lstrip().startswith("!") for cell in cells for line in cell.run.split("\n"))


def _of_file(found: MissingModule) -> Problem:
    return Problem(_level(found), f"{found.where}, line {found.line}: {found.text}")


def _level(found: MissingModule) -> Level:
    return "error" if found.sure else "warning"


def in_order(found: list[Problem]) -> tuple[Problem, ...]:
    """Return problems ordered by severity: errors first, information last."""
    levels = get_args(Level)
    return tuple(sorted(found, key=lambda each: levels.index(each.level)))
