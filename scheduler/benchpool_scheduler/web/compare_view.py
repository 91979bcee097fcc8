"""Differences of two jobs: outcome, requested resources and submitted code.

Pure functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler import phrases
from benchpool_scheduler.changes.code import SAME_CODE, CodeLine, code_difference
from benchpool_scheduler.changes.environments import environment_changes
from benchpool_scheduler.contract import (
    CommandEntry,
    JobDetail,
    JobSubmission,
    ModuleEntry,
    ScriptEntry,
    SentCode,
)
from benchpool_scheduler.contract.run_changes import RunChange
from benchpool_scheduler.contract.run_environment import NAME, RunEnvironment
from benchpool_scheduler.curves.parameters import NONE, command_line, options_of
from benchpool_scheduler.web.job_rows import run_time

NAMED_FILES = 8


@dataclass(frozen=True, slots=True)
class Sent:
    """One of the two jobs; ``code`` is None when its content was deleted, and ``environment`` when
    its packages are not known here.
    """

    detail: JobDetail
    submission: JobSubmission
    code: SentCode | None
    environment: RunEnvironment | None = None


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One fact of both jobs."""

    name: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        """Return whether the two values differ."""
        return self.first != self.second


@dataclass(frozen=True, slots=True)
class SendComparison:
    """Comparison of two jobs; ``code_note`` is shown where ``code`` is empty.

    ``around`` has the differences of their environments, ``around_note`` is shown without any.
    """

    answer: str
    outcome: tuple[CompareRow, ...]
    differing: tuple[CompareRow, ...]
    same: tuple[CompareRow, ...]
    around: tuple[CompareRow, ...]
    around_note: str
    code: tuple[CodeLine, ...]
    code_note: str


def compare(first: Sent, second: Sent, now: datetime) -> SendComparison:
    """Compare two jobs; the one that was submitted earlier comes first."""
    options = tuple(_rows(_asked(first.submission), _asked(second.submission)))
    code, note = code_difference(first.code, second.code)
    differing = tuple(row for row in options if row.differs)
    return SendComparison(
        answer=_answer(differing, code, note),
        outcome=tuple(_rows(_outcome(first.detail, now), _outcome(second.detail, now))),
        differing=differing,
        same=tuple(row for row in options if not row.differs),
        around=_around(first, second),
        around_note=_around_note(first, second),
        code=code,
        code_note=note,
    )


def _around(first: Sent, second: Sent) -> tuple[CompareRow, ...]:
    if first.environment is None or second.environment is None:
        return ()
    found = environment_changes(first.environment, second.environment)
    return tuple(CompareRow(_around_name(it), it.before or NONE, it.after or NONE) for it in found)


def _around_name(change: RunChange) -> str:
    shown = change.area in ("environment", "commit")
    return change.name if shown else f"{change.area} {change.name}"


def _around_note(first: Sent, second: Sent) -> str:
    unknown = [it.detail.job.id[:8] for it in (first, second) if it.environment is None]
    if unknown:
        return (
            f"{_listed(unknown)} {'has' if len(unknown) == 1 else 'have'} no {NAME} in the pool. "
            "Runs of cells and notebooks write it with their results, and it is deleted with them."
        )
    return "The same Python, packages, driver, image, commit, modules, data and seeds."


def _answer(differing: tuple[CompareRow, ...], code: tuple[CodeLine, ...], note: str) -> str:
    changed = sum(line.kind in ("new", "gone") for line in code)
    parts = [row.name for row in differing]
    parts += [f"{phrases.count(changed, 'line')} of code"] if changed else []
    if parts:
        return f"They were sent with different {_listed(parts)}."
    if note == SAME_CODE:
        return "They were sent with the same options and the same code."
    return f"They were sent with the same options. {note}"


def _listed(parts: list[str]) -> str:
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def _rows(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[CompareRow]:
    for name in dict.fromkeys([*first, *second]):
        yield CompareRow(name, first.get(name, NONE), second.get(name, NONE))


# --------------------------------------------------------------------------- outcome


def _outcome(detail: JobDetail, now: datetime) -> dict[str, str]:
    job = detail.job
    waited = None if job.started is None else (job.started - job.submitted).total_seconds()
    progress = job.progress
    text = "" if progress is None else progress.text or ""
    done = (
        "" if progress is None or progress.fraction is None else phrases.percent(progress.fraction)
    )
    return {
        "State": job.state.value,
        "Why": "–" if job.reason is None else job.reason.text,
        "Exit code": "–" if job.exit_code is None else str(job.exit_code),
        "Waited for its first start": "–" if waited is None else phrases.duration(waited),
        "Ran": run_time(detail.attempts, now) or "–",
        "Attempts": str(job.attempt),
        "Pauses": str(len(detail.pauses)),
        "Last progress": " ".join(part for part in (done, text) if part) or "–",
    }


# --------------------------------------------------------------------------- requests


def _asked(submission: JobSubmission) -> dict[str, str]:
    found = options_of(submission)
    match submission.entry:
        case CommandEntry(argv=argv):
            found["command"] = command_line(argv)
        case ScriptEntry(path=path, args=args) | ModuleEntry(module=path, args=args):
            found["program"], found["arguments"] = phrases.visible(path), command_line(args) or NONE
    found["Python"] = submission.interpreter or "–"
    files = {file.path: file.sha256 for file in submission.files}
    return found | {
        f"file {phrases.visible(path)}": f"content {files[path][:8]}" for path in sorted(files)
    }


def shortened(rows: Iterable[CompareRow]) -> tuple[tuple[CompareRow, ...], int]:
    """Return the rows with at most ``NAMED_FILES`` files, and the number of files left out."""
    kept, files = list[CompareRow](), 0
    for row in rows:
        files += row.name.startswith("file ")
        if not row.name.startswith("file ") or files <= NAMED_FILES:
            kept.append(row)
    return tuple(kept), max(0, files - NAMED_FILES)
