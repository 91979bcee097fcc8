"""What ended jobs and benches used, for longer than their records are kept: lines of JSON.

    past-jobs/2026-11.jsonl              what was removed in November 2026

A line is a job, or a bench (``PastBench``); releases that know no benches leave those out. It is on
disk before the record goes, so a crash in between writes it twice: who reads takes
each job once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from benchpool_scheduler.store.appending import append_whole


class HeldInterval(msgspec.Struct, frozen=True, array_like=True):
    """GPUs from one instant to another, in epoch seconds; ``ended`` is None while they are held."""

    begun: float
    ended: float | None
    gpus: int


class PastBench(msgspec.Struct, frozen=True):
    """A bench that was given back: its lease's id, whose it was, and what it held since when."""

    bench: str
    user: str
    gpus: int
    since: float
    until: float


class PaidTo(msgspec.Struct, frozen=True, array_like=True):
    """Somebody a job made way for; nobody is named where benches got the GPUs."""

    at: float
    user: str | None = None
    project: str | None = None


class PastJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """An ended job as history and what-ifs know it; times are epoch seconds.

    Attributes:
        ran_s: Of all attempts together. ``unsaved_s``: what each pause cost of it, as measured;
            ``lost_s``: as estimated with the restart, where it was not. Seconds of its run time.
        gpus: Of all workers together. ``held``: of each worker from its start to its end; empty in
            lines of releases that did not keep it.
        started: When it began first, None where that was not kept. ``paid``: each time that it was
            preempted, and for whom.
    """

    id: str
    submitted: float
    ended: float
    ran_s: float
    gpus: int
    project: str
    user: str
    workers: int = 1
    priority: int = 0
    time_limit_s: float | None = None
    lost_s: tuple[float, ...] = ()
    unsaved_s: tuple[float, ...] = ()
    held: tuple[HeldInterval, ...] = ()
    started: float | None = None
    paid: tuple[PaidTo, ...] = ()

    @property
    def began(self) -> float | None:
        """When it began first; in lines of earlier releases its first worker; None for unknown."""
        if self.started is not None:
            return self.started
        return min((it.begun for it in self.held), default=None)


@dataclass(frozen=True, slots=True)
class PastJobs:
    """The folder of these files; all verbs block.

    Args:
        folder: Made with the first line, readable for the service's account alone.
    """

    folder: Path

    def add(self, jobs: Sequence[PastJob | PastBench], now: float) -> None:
        """Keep these; they are on disk when this returns. Errors: OSError, then nothing is added.

        Args:
            now: Epoch seconds.
        """
        data = b"".join(msgspec.json.encode(job) + b"\n" for job in jobs)
        if not data:
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self.folder / f"{datetime.fromtimestamp(now, UTC):%Y-%m}.jsonl"
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            before = os.fstat(descriptor).st_size
            if before and os.pread(descriptor, 1, before - 1) != b"\n":
                data = b"\n" + data  # a crash cut the last line off
            append_whole(descriptor, data, before)
        finally:
            os.close(descriptor)

    def read(self, since: float) -> Iterator[PastJob]:
        """Yield what ended at ``since`` or later, each job once; what cannot be read is left out.

        Args:
            since: Epoch seconds.
        """
        seen: set[str] = set()
        for line in self._lines(since):
            job = _decoded(line)
            if job is not None and job.ended >= since and job.id not in seen:
                seen.add(job.id)
                yield job

    def read_benches(self, since: float) -> Iterator[PastBench]:
        """Yield the benches that were given back at ``since`` or later, each once.

        Args:
            since: Epoch seconds.
        """
        newest: dict[str, PastBench] = {}
        for line in self._lines(since):
            bench = _bench(line)
            if bench is not None and bench.until >= since:
                newest[bench.bench] = bench  # a crash may have come before the bench was gone
        yield from newest.values()

    def _lines(self, since: float) -> Iterator[bytes]:
        """Yield the lines of files that may hold what ended then or later."""
        first = f"{datetime.fromtimestamp(since, UTC):%Y-%m}"
        for file in self._files():
            if file.stem >= first:
                with file.open("rb") as lines:
                    yield from lines

    def expire(self, before: float) -> None:
        """Delete the files in which everything ended before that time, but not the newest.

        Args:
            before: Epoch seconds.
        """
        for file in self._files()[:-1]:
            with file.open("rb") as lines:
                ended = [at for line in lines if (at := _ended(line)) is not None]
            if max(ended, default=0.0) < before:
                file.unlink()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("*.jsonl"))


FOLDER = "past-jobs"
NAME = re.compile(rf"{FOLDER}/[0-9]{{4}}-[0-9]{{2}}\.jsonl")
"""Where these files lie in a copy."""


def copy_into(past: Path, folder: Path) -> None:
    """Put all whole lines of these files into a folder. Errors: OSError."""
    for file in sorted(past.glob("*.jsonl")):
        folder.mkdir(exist_ok=True, mode=0o700)
        data = file.read_bytes()
        target = folder / file.name
        target.write_bytes(data[: data.rfind(b"\n") + 1])
        target.chmod(0o600)


def put_back(copy: Path, past: Path) -> int:
    """Add what a copy has and a folder lacks; return how many jobs. Errors: OSError.

    Nothing is taken away: who reads takes each job once.
    """
    added = 0
    for file in sorted(copy.glob("*.jsonl")):
        target = past / file.name
        there = target.read_bytes() if target.exists() else b""
        known = set(there.splitlines())
        missing = [line for line in file.read_bytes().splitlines() if line not in known]
        if missing:
            past.mkdir(parents=True, exist_ok=True, mode=0o700)
            begun = there if there.endswith(b"\n") or not there else there + b"\n"
            new = target.with_name(f".{target.name}.restored")
            new.write_bytes(begun + b"".join(line + b"\n" for line in missing))
            new.chmod(0o600)
            new.replace(target)
            added += sum(_ended(line) is not None for line in missing)
    return added


def _decoded(line: bytes) -> PastJob | None:
    try:
        return msgspec.json.decode(line, type=PastJob)
    except msgspec.DecodeError:
        return None


def _bench(line: bytes) -> PastBench | None:
    try:
        return msgspec.json.decode(line, type=PastBench)
    except msgspec.DecodeError:
        return None


def _ended(line: bytes) -> float | None:
    """Return when the job or bench of a line ended; None for one that cannot be read."""
    job, bench = _decoded(line), _bench(line)
    return job.ended if job is not None else None if bench is None else bench.until
