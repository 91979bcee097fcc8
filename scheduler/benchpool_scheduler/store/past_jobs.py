"""Use by ended jobs and benches, kept longer than their records: JSON lines.

    past-jobs/2026-11.jsonl              removed in November 2026

A line is a job, or a bench (``PastBench``); releases without benches skip those. A line is on disk
before the record is removed. A crash in between writes it twice, so readers skip duplicates.
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
    """Number of GPUs held from ``begun`` to ``ended``, epoch seconds; None while still held."""

    begun: float
    ended: float | None
    gpus: int


class PastBench(msgspec.Struct, frozen=True):
    """Released bench: the ID of its lease, its user, and its GPUs with begin and end."""

    bench: str
    user: str
    gpus: int
    since: float
    until: float


class PaidTo(msgspec.Struct, frozen=True, array_like=True):
    """User and project that a job was preempted for; both None where benches got the GPUs."""

    at: float
    user: str | None = None
    project: str | None = None


class PastJob(msgspec.Struct, frozen=True, omit_defaults=True):
    """Ended job as used by history and what-ifs; times are epoch seconds.

    Attributes:
        ran_s: Run time of all attempts. ``unsaved_s``: measured loss of each pause;
            ``lost_s``: estimated loss with the restart, where it was not measured. All are seconds
            of run time.
        gpus: Of all workers together. ``held``: of each worker from its start to its end; empty in
            lines of releases that did not record it.
        started: First start, None where it was not recorded. ``paid``: each preemption, with its
            beneficiary.
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
        """Return its first start, else the first worker's start (earlier releases), else None."""
        if self.started is not None:
            return self.started
        return min((it.begun for it in self.held), default=None)


@dataclass(frozen=True, slots=True)
class PastJobs:
    """Folder of these files; all methods block.

    Args:
        folder: Created with the first line, readable for the service's account alone.
    """

    folder: Path

    def add(self, jobs: Sequence[PastJob | PastBench], now: float) -> None:
        """Append lines durably. Errors: OSError, and then nothing is added.

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
                data = b"\n" + data  # a crash cut off the last line
            append_whole(descriptor, data, before)
        finally:
            os.close(descriptor)

    def read(self, since: float) -> Iterator[PastJob]:
        """Yield each readable job that ended at ``since`` or later, once.

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
        """Yield each bench that was released at ``since`` or later, once.

        Args:
            since: Epoch seconds.
        """
        newest: dict[str, PastBench] = {}
        for line in self._lines(since):
            bench = _bench(line)
            if bench is not None and bench.until >= since:
                newest[bench.bench] = bench  # a crash may have left an earlier line of this bench
        yield from newest.values()

    def _lines(self, since: float) -> Iterator[bytes]:
        """Yield the lines of files that can contain jobs or benches that ended then or later."""
        first = f"{datetime.fromtimestamp(since, UTC):%Y-%m}"
        for file in self._files():
            if file.stem >= first:
                with file.open("rb") as lines:
                    yield from lines

    def expire(self, before: float) -> None:
        """Delete the files in which everything ended before that time, except the newest file.

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
"""Pattern of the paths of these files in a backup."""


def copy_into(past: Path, folder: Path) -> None:
    """Copy all complete lines of these files into a folder. Errors: OSError."""
    for file in sorted(past.glob("*.jsonl")):
        folder.mkdir(exist_ok=True, mode=0o700)
        data = file.read_bytes()
        target = folder / file.name
        target.write_bytes(data[: data.rfind(b"\n") + 1])
        target.chmod(0o600)


def put_back(copy: Path, past: Path) -> int:
    """Append missing lines from a copy; return the number of jobs and benches. Errors: OSError.

    Existing lines stay; readers skip duplicates.
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
    """Return when the job or bench of a line ended; None for an unreadable line."""
    job, bench = _decoded(line), _bench(line)
    return job.ended if job is not None else None if bench is None else bench.until
