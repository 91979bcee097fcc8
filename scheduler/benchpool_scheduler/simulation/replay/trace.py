"""Read traces (formats, section 2) strictly; an error names file, line and column."""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO, TypeVar

from benchpool_scheduler.errors import InvalidInput

DAY_S = 86_400.0
NEEDED = ("submit_s", "duration_s", "gpus", "project")
OPTIONAL = ("user", "workers", "gpu_models", "priority", "time_limit_s")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One row of a trace.

    Attributes:
        line: Line number in the file; the header is line 1.
        submit_s: Seconds from the trace's zero. ``duration_s``: uninterrupted run time.
        gpus: GPUs of all its workers. ``workers``: None if the trace has no number.
        priority: None if the trace has none.
    """

    line: int
    submit_s: float
    duration_s: float
    gpus: int
    project: str
    user: str | None = None
    workers: int | None = None
    gpu_models: tuple[str, ...] = ()
    priority: int | None = None
    time_limit_s: float | None = None

    @property
    def work_gpu_s(self) -> float:
        """Return the work of the job in GPU-seconds."""
        return self.gpus * self.duration_s


def read(path: Path) -> list[TraceJob]:
    """Return the jobs of a trace by submission; jobs of one instant keep the file's order.

    Raises:
        InvalidInput: The file cannot be read, or a cell is invalid.
    """
    jobs = sorted(_rows(path), key=lambda job: job.submit_s)
    if not jobs:
        raise InvalidInput(f"{path} has no jobs; give a trace with at least one row")
    return jobs


def _rows(path: Path) -> Iterator[TraceJob]:
    try:
        with _open(path) as file:
            reader = csv.reader(file, strict=True)
            header = _header(path, next(reader, []))
            for cells in reader:
                if cells:
                    yield _job(path, reader.line_num, header, cells)
    except (OSError, EOFError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}; give a readable trace") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} is not CSV in UTF-8: {error}; correct it") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="")
    return path.open(encoding="utf-8", newline="")


def _header(path: Path, names: Sequence[str]) -> Sequence[str]:
    for name in NEEDED:
        if name not in names:
            raise InvalidInput(f"{path}, line 1 lacks the column {name}; add it", field=name)
    for name, number in Counter(names).items():
        if name not in (*NEEDED, *OPTIONAL):
            known = ", ".join((*NEEDED, *OPTIONAL))
            raise InvalidInput(
                f"{path}, line 1 has the unknown column {name!r}; the columns are {known}",
                field=name,
            )
        if number > 1:
            raise InvalidInput(f"{path}, line 1 has the column {name} twice; keep one", field=name)
    return names


def _job(path: Path, line: int, header: Sequence[str], cells: Sequence[str]) -> TraceJob:
    if len(cells) != len(header):
        raise InvalidInput(
            f"{path}, line {line} has {len(cells)} cells, the header {len(header)}; make them equal"
        )
    row = _Row(f"{path}, line {line}", dict(zip(header, cells, strict=True)))
    gpus = row.get("gpus", _whole, 1)
    workers = row.maybe("workers", _whole, 1)
    if workers is not None and gpus % workers:
        raise row.wrong("workers", f"a divisor of the job's {gpus} GPUs")
    return TraceJob(
        line=line,
        submit_s=row.get("submit_s", _number, 0),
        duration_s=row.get("duration_s", _number, 0),
        gpus=gpus,
        project=row.text("project"),
        user=row.cells.get("user") or None,
        workers=workers,
        gpu_models=tuple(
            m.strip() for m in row.cells.get("gpu_models", "").split(";") if m.strip()
        ),
        priority=row.maybe("priority", _whole, 0),
        time_limit_s=row.maybe("time_limit_s", _number, 0),
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """The cells of a line by column, and its position."""

    where: str
    cells: Mapping[str, str]

    def wrong(self, column: str, wanted: str) -> InvalidInput:
        """Return the error for an invalid cell, with the expected value."""
        return InvalidInput(
            f"{self.where}, column {column} must be {wanted}; it is {self.cells[column]!r}",
            field=column,
        )

    def get(self, column: str, parse: Callable[[str], T | None], least: int) -> T:
        """Return a number of at least ``least``."""
        value = parse(self.cells[column])
        if value is None or value < least:  # type: ignore[operator]
            kind = "a whole number" if parse is _whole else "a number"
            raise self.wrong(column, f"{kind} from {least}")
        return value

    def maybe(self, column: str, parse: Callable[[str], T | None], least: int) -> T | None:
        """Return a number, or None if the column is missing or the cell is empty."""
        return self.get(column, parse, least) if self.cells.get(column) else None

    def text(self, column: str) -> str:
        """Return a non-empty text."""
        if not self.cells[column]:
            raise self.wrong(column, "a name")
        return self.cells[column]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _whole(text: str) -> int | None:
    value = _number(text)
    return int(value) if value is not None and value == int(value) else None


# --------------------------------------------------------------------------- selection


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of the jobs of a trace, and their density.

    Attributes:
        window: Days between which a job must be submitted (end excluded); None for all.
        min_jobs: Projects with fewer jobs in the window are left out.
        load: Divisor of the submission times.
        sample: The share of the jobs that is kept, drawn with ``seed``.
    """

    window: tuple[float, float] | None = None
    min_jobs: int = 0
    load: float = 1.0
    sample: float = 1.0
    seed: int = 0

    def of(self, jobs: Sequence[TraceJob]) -> list[TraceJob]:
        """Return the selected jobs: by window, then small projects, then sample, then load.

        Raises:
            InvalidInput: No job is left.
        """
        if self.window is not None:
            first, last = (day * DAY_S for day in self.window)
            jobs = [job for job in jobs if first <= job.submit_s < last]
        number = Counter(job.project for job in jobs)
        jobs = [job for job in jobs if number[job.project] >= self.min_jobs]
        if self.sample < 1:
            chance = random.Random(self.seed)  # noqa: S311  a repeatable draw, no secret
            jobs = [job for job in jobs if chance.random() < self.sample]
        if not jobs:
            raise InvalidInput(
                "no job of the trace is left to replay; widen --window, lower --min-jobs "
                "or raise --sample"
            )
        return [replace(job, submit_s=job.submit_s / self.load) for job in jobs]

    @property
    def window_s(self) -> tuple[float, float] | None:
        """Return the window in seconds of the replay; None without one."""
        if self.window is None:
            return None
        first, last = self.window
        return first * DAY_S / self.load, last * DAY_S / self.load
