"""``benchpool changes``: shows the differences between two runs."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchpool_scheduler.changes.code import CodeLine, code_difference
from benchpool_scheduler.changes.environments import NOT_IN, environment_changes
from benchpool_scheduler.changes.options import option_changes
from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument
from benchpool_scheduler.client import Client, results
from benchpool_scheduler.contract import JobDetail, JobSubmission, SentCode
from benchpool_scheduler.contract.run_changes import RunChange
from benchpool_scheduler.contract.run_environment import MOST_BYTES, NAME, RunEnvironment
from benchpool_scheduler.errors import NotFound

COLUMNS = (Column("WHAT", width=12), Column("NAME"), Column("WAS"), Column("IS"))


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Facts about a run. None for what does not exist or is no longer kept."""

    detail: JobDetail
    submission: JobSubmission
    code: SentCode | None
    environment: RunEnvironment | None


def _changes(session: Session, options: Options) -> int:
    before, after = (facts_of(session.client, options[name]) for name in ("before", "after"))
    found = [*option_changes(before.submission, after.submission)]
    if before.environment is not None and after.environment is not None:
        found += environment_changes(before.environment, after.environment)
    code, note = code_difference(before.code, after.code)
    unknown = [run.detail.job.id for run in (before, after) if run.environment is None]
    if session.screen.json:
        lines = [line.text for line in code]
        session.screen.value({"changes": found, "code": lines, "without_environment": unknown})
    else:
        show(session.screen, found, code, note, unknown)
    return 0


def show(
    screen: Screen,
    found: Sequence[RunChange],
    code: Sequence[CodeLine],
    note: str,
    unknown: Sequence[str],
) -> None:
    """Print the differences, and what cannot be compared."""
    if found:
        screen.table(COLUMNS, [_row(it) for it in found])
    elif not unknown:
        screen.line("Options and environment are the same.")
    for id_ in unknown:
        screen.line(
            f"{words.short(id_)} has no {NAME} that can be read from here. Runs of cells and "
            "notebooks write one beside their results."
        )
    for line in code:
        screen.line(words.clean(line.text))
    if note:
        screen.line(note)


def _row(change: RunChange) -> Sequence[str]:
    was, now = (NOT_IN if it is None else words.clean(it) for it in (change.before, change.after))
    return (change.area, words.clean(change.name), was, now)


def facts_of(client: Client, id_: str) -> RunFacts:
    """Return the facts about a run from the pool and its results. Errors: NotFound for the job."""
    detail = client.job(id_)
    submission = client.submission(detail.job.id)
    try:
        code = client.code(detail.job.id)
    except NotFound:
        code = None
    return RunFacts(detail, submission, code, _environment(client, detail, submission))


def _environment(
    client: Client, detail: JobDetail, submission: JobSubmission
) -> RunEnvironment | None:
    folder = Path(submission.output_dir) if submission.output_dir else None
    if folder is not None and (folder / NAME).is_file():
        return read(folder)
    with tempfile.TemporaryDirectory() as fetched:
        try:
            results.fetch(client, detail.job.id, Path(fetched), detail.most_workers)
        except NotFound:
            return None
        return read(Path(fetched))


def read(folder: Path) -> RunEnvironment | None:
    """Return the environment recorded in a run's results, or None without a valid record."""
    try:
        with (folder / NAME).open("rb") as file:
            return msgspec.json.decode(file.read(MOST_BYTES), type=RunEnvironment)
    except (OSError, msgspec.DecodeError):
        return None


CHANGES = Verb(
    ("changes",),
    "Show the differences between runs A and B: options, code, environment, data.",
    _changes,
    (argument("before", metavar="A"), argument("after", metavar="B")),
    "Environment, data and seeds are those that the runs recorded beside their results.",
)
