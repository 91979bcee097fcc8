"""What two jobs differ in: how they went, what they asked for, the code that they were sent with.

Pure.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import (
    CommandEntry,
    JobDetail,
    JobSubmission,
    ModuleEntry,
    ScriptEntry,
    SentCode,
)
from benchpool_scheduler.contract.options import OPTIONS
from benchpool_scheduler.web.job_rows import run_time

MOST_LINES = 4000
"""Code of more lines is not compared: it would take seconds."""
LONGEST = 200
NAMED_FILES = 8
CONTEXT = 2

Kind = Literal["new", "gone", "place", "same"]


@dataclass(frozen=True, slots=True)
class Sent:
    """One of both; ``code`` is None where its content is no longer there."""

    detail: JobDetail
    submission: JobSubmission
    code: SentCode | None


@dataclass(frozen=True, slots=True)
class CompareRow:
    """One fact of both."""

    name: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        """Whether it is not the same."""
        return self.first != self.second


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the difference: only in the second, only in the first, where it is, or in both."""

    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class SendComparison:
    """Both side by side; ``code_note`` says what there is to say where ``code`` is empty."""

    answer: str
    outcome: tuple[CompareRow, ...]
    differing: tuple[CompareRow, ...]
    same: tuple[CompareRow, ...]
    code: tuple[CodeLine, ...]
    code_note: str


def compare(first: Sent, second: Sent, now: datetime) -> SendComparison:
    """Compare two jobs; what was sent earlier comes first."""
    options = tuple(_rows(_asked(first.submission), _asked(second.submission)))
    code, note = _code(first.code, second.code)
    differing = tuple(row for row in options if row.differs)
    return SendComparison(
        answer=_answer(differing, code, note),
        outcome=tuple(_rows(_outcome(first.detail, now), _outcome(second.detail, now))),
        differing=differing,
        same=tuple(row for row in options if not row.differs),
        code=code,
        code_note=note,
    )


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
        yield CompareRow(name, first.get(name, "–"), second.get(name, "–"))


# --------------------------------------------------------------------------- how they went


def _outcome(detail: JobDetail, now: datetime) -> dict[str, str]:
    job = detail.job
    waited = None if job.started is None else (job.started - job.submitted).total_seconds()
    progress = job.progress
    said = "" if progress is None else progress.text or ""
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
        "Progress, last said": " ".join(part for part in (done, said) if part) or "–",
    }


# --------------------------------------------------------------------------- what they asked for


def _asked(submission: JobSubmission) -> dict[str, str]:
    found = {
        _title(option.field): _value(option.field, getattr(submission, option.field))
        for option in OPTIONS
        if option.field not in ("name", "env")
    }
    found |= {f"variable {name}": _cut(value) for name, value in sorted(submission.env.items())}
    entry = submission.entry
    match entry:
        case CommandEntry(argv=argv):
            found["command"] = _cut(shlex.join(argv))
        case ScriptEntry(path=path, args=args) | ModuleEntry(module=path, args=args):
            found["program"], found["arguments"] = path, _cut(shlex.join(args)) or "–"
    found["Python"] = submission.interpreter or "–"
    files = {file.path: file.sha256 for file in submission.files}
    return found | {f"file {path}": f"content {files[path][:8]}" for path in sorted(files)}


def _title(field: str) -> str:
    """Return a field as people call it.

    >>> _title("gpu_models"), _title("time_limit_s"), _title("cpus")
    ('GPU models', 'time limit', 'CPUs')
    """
    words = field.removesuffix("_s").removesuffix("_gib").replace("_", " ")
    return re.sub(r"\b[gc]pu", lambda found: found.group().upper(), words)


def _value(field: str, value: object) -> str:
    match value:
        case None | () | "":
            return "–"
        case bool():
            return "yes" if value else "no"
        case tuple() | list():
            return _cut(", ".join(str(one) for one in value))
        case int() | float() if field.endswith("_s"):
            return phrases.duration(value)
        case float() | int() if field.endswith("_gib"):
            return f"{value:g} GiB" if value else "–"
    return _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


# --------------------------------------------------------------------------- the code

SAME_CODE = "The code is the same."


def _code(first: SentCode | None, second: SentCode | None) -> tuple[tuple[CodeLine, ...], str]:
    if first is None or second is None:
        return (), "The code of one of them is no longer kept."
    before, after = _lines(first), _lines(second)
    if not before and not after:
        return (), "No code travelled with them: they ran what lay in their folder."
    if max(len(before), len(after)) > MOST_LINES:
        return (), f"The code has more than {MOST_LINES} lines: too long to compare here."
    lines = difflib.unified_diff(before, after, n=CONTEXT, lineterm="")
    found = tuple(_line(line) for line in list(lines)[2:])
    cut = first.cut or second.cut
    return found, "" if found else ("The first MiB is the same." if cut else SAME_CODE)


def _lines(code: SentCode) -> list[str]:
    if code.text is not None:
        return code.text.splitlines()
    return [line for cell in code.cells for line in ("# %%", *cell.source.splitlines())]


def _line(line: str) -> CodeLine:
    kinds: Mapping[str, Kind] = {"+": "new", "-": "gone", "@": "place"}
    return CodeLine(kinds.get(line[:1], "same"), line)


def shortened(rows: Iterable[CompareRow]) -> tuple[tuple[CompareRow, ...], int]:
    """Return the rows with at most ``NAMED_FILES`` of files, and how many of those are left out."""
    kept, files = list[CompareRow](), 0
    for row in rows:
        files += row.name.startswith("file ")
        if not row.name.startswith("file ") or files <= NAMED_FILES:
            kept.append(row)
    return tuple(kept), max(0, files - NAMED_FILES)
