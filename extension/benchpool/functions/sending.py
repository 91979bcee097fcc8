"""Submission of function calls: their needs are found once, each call is a job."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from benchpool import drafts, handles, import_problems, keywords
from benchpool.cells import CellChoice, CellSelection, Problem
from benchpool.drafts import Draft, JobOptions
from benchpool.functions.call_text import FunctionCall
from benchpool.functions.pieces import CALL, Senders, chosen, shape_of, with_call
from benchpool.functions.sent_jobs import SentJobs
from benchpool.functions.session import CodeSession, current, sender_names
from benchpool.functions.session_calls import parameters_of, written_call, written_calls
from benchpool.keep import Keep
from benchpool.kernel_environment import kernel_environment
from benchpool.submit_keywords import SubmitKeywords
from benchpool_scheduler.client.notebooks import JobCell
from benchpool_scheduler.contract.options import fields_of
from benchpool_scheduler.contract.sweeps import trial_priority
from benchpool_scheduler.errors import BenchpoolError, InvalidInput

PATH_CELL = "benchpool-path"
"""ID of the cell that makes a script's own modules importable."""


def submit_call(
    function: Callable[..., Any],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    asked: Mapping[str, Any],
    *,
    key: str | None = None,
) -> handles.JobHandle:
    """Submit one call of a function. Takes the arguments of ``drafted_call``, raises its errors.

    Raises:
        Refused: A rule of the pool rejects the job.
    """
    return handles.send(drafted_call(function, args, kwargs, asked, key=key))


def drafted_call(
    function: Callable[..., Any],
    args: Sequence[object],
    kwargs: Mapping[str, object],
    asked: Mapping[str, Any],
    *,
    key: str | None = None,
) -> Draft:
    """Return the draft of one call of a function.

    Args:
        asked: Options of ``benchpool.submit`` by name.
        key: Makes a retry with the same key harmless.

    Raises:
        InvalidInput: A part of it would fail.
    """
    options, session = options_of(asked, key), current()
    call = written_call(session, function, args, kwargs)
    return draft_of_call(session, _senders(session), call, options)


def draft_of_call(
    session: CodeSession, senders: Senders, call: FunctionCall, options: JobOptions
) -> Draft:
    """Return the draft of one call that the session wrote. Raises the errors of ``submit``."""
    options = replace(options, parameters=parameters_of(call))
    return draft_of(session, call, senders, options, {})


def map(
    function: Callable[..., object],
    calls: Iterable[object],
    *,
    most: int | None = None,
    **options: Unpack[SubmitKeywords],
) -> SentJobs:
    """Submit one job for each element of ``calls`` and return the jobs in that order.

    Args:
        function: The function that the jobs call.
        calls: The arguments of each job: a dictionary by name, as made by ``benchpool.grid``,
            a tuple, or a single argument.
        most: Maximum number of jobs (default: 100); more are rejected before the first is sent.

    Raises:
        InvalidInput: A part of them is known to fail; then none is submitted.
        Refused: A rule of the pool rejects one; the jobs before it are cancelled.
    """
    session = current()
    written = written_calls(session, function, calls, most)
    return send_calls(session, _senders(session), written, options_of(options, None))


def send_calls(
    session: CodeSession, senders: Senders, written: Sequence[FunctionCall], asked: JobOptions
) -> SentJobs:
    """Submit a job for each call that the session wrote. Raises the errors of ``map``."""
    tag = f"map-{asked.key[:8]}"
    priority = trial_priority(asked.spec.priority) if len(written) > 1 else asked.spec.priority
    tags = (*asked.spec.tags, tag)
    asked = replace(asked, spec=asked.spec.changed(tags=tags, priority=priority))
    made: list[Draft] = []
    found: dict[str, CellSelection] = {}
    for number, call in enumerate(written, start=1):
        one = _numbered(asked, call, number)
        like = made[0] if made else None
        made.append(draft_of(session, call, senders, one, found, like).check())  # all or none
    sent = SentJobs([], tag)
    try:
        for each in made:
            sent.append(handles.send(each))
    except (BenchpoolError, KeyboardInterrupt):
        sent.cancel("the map could not be sent completely")
        raise
    return sent


keywords.describe(map)


def draft_of(
    session: CodeSession,
    call: FunctionCall,
    senders: Senders,
    options: JobOptions,
    found: dict[str, CellSelection],
    like: Draft | None = None,
) -> Draft:
    """Return a draft of a call's job: the statements that it needs, and the call as the last cell.

    Args:
        found: Known needs of calls by their shape; new ones are added.
        like: Another draft of the same session, whose files it shares.
    """
    here = kernel_environment(os.environ)
    text = "\n".join([*[f"import {each}" for each in call.imports], call.text])
    shape = shape_of(text)
    if shape not in found:
        found[shape] = _with_path(session, chosen(session.cells, text, senders))
    selection = with_call(found[shape], text)
    cells = [
        JobCell(each.id, each.index + 1, each.run) for each in selection.cells if each.included
    ]
    name = drafts.name_of(call.name)
    if like is not None:
        draft = drafts.of_others(like, cells, selection, options, name=name)
    else:
        draft = drafts.of_chosen(
            cells,
            selection,
            options,
            name=name,
            kind="function",
            sent=[],
            folder=session.folder,
            interpreter=session.interpreter,
            path=session.path,
            here=here,
        )
    if like is None or _runs(draft) != _runs(like):
        draft = import_problems.checked(draft, None, here)
    return replace(draft, problems=tuple(_placed(each, session, call) for each in draft.problems))


def _runs(draft: Draft) -> list[str]:
    """Return the code that a draft runs before its call."""
    cells = draft.selection.cells if draft.selection else ()
    return [each.run for each in cells if each.included and each.id != CALL]


def _with_path(session: CodeSession, found: CellSelection) -> CellSelection:
    """Add a cell that makes a script's modules importable, if they are in another folder."""
    if session.module_folder is None:
        return found
    run = f"import sys\n\nsys.path.insert(0, {session.module_folder!r})"
    first = CellChoice(PATH_CELL, 0, True, False, "makes the script's modules importable", run)
    return CellSelection((first, *found.cells), found.problems)


def _placed(problem: Problem, session: CodeSession, call: FunctionCall) -> Problem:
    """Return a problem with its position added, if it is in a script or in the call itself."""
    if problem.cell is None or problem.cell.startswith("in-"):
        return problem
    own = problem.cell == CALL
    where = f"In `{call.text[:200]}`" if own else f"{problem.cell}, line {problem.line}"
    text = problem.text.replace("in no cell of this notebook", "nowhere before this line")
    return Problem(problem.level, f"{where}: {text}")


def options_of(asked: Mapping[str, Any], key: str | None) -> JobOptions:
    """Return the options of a function's job, given by name. Raises the errors of ``submit``."""
    for name in asked.keys() - keywords.NAMES - {"pickle"}:
        known = ", ".join(sorted(keywords.NAMES))
        raise TypeError(f"{name!r} is not an option of a job; the options are {known}")
    if asked.get("parameters"):
        raise InvalidInput(
            "parameters= is for notebooks. Pass arguments to the function.", field="parameters"
        )
    keep = Keep((), pickle=bool(asked.get("pickle")), returns=True)
    return replace(JobOptions.of(fields_of(asked), key or uuid.uuid4().hex), keep=keep)


def _numbered(options: JobOptions, call: FunctionCall, number: int) -> JobOptions:
    """Return the options of one of many jobs, with its own key and name."""
    name = f"{options.name or call.name} {number}"
    key = f"{options.key}-{number}"
    return replace(options, name=name, key=key, parameters=parameters_of(call))


def _senders(session: CodeSession) -> Senders:
    return Senders.of(sender_names(session.namespace, (handles.submit, map)))
