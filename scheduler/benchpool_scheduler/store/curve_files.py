"""The curves of jobs: a file of lines for each job, which grows with the job's reports.

    curves/7k2m….jsonl               the reports in their order; a line is a ``MetricReport``

``benchpool_scheduler.curves`` has the rules that fold reports into a curve. A file that would grow
far beyond its folded size is rewritten. A line that a crash cut off is skipped.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchpool_scheduler.curves.series import Lines, MetricReport, as_reports, remade
from benchpool_scheduler.store import whole_files

FOLDER = "curves"
NAME = re.compile(rf"{FOLDER}/[a-z0-9]{{1,64}}\.jsonl")
"""Pattern of the paths of these files in a backup."""
_FILE = re.compile(r"[a-z0-9]{1,64}\.jsonl")

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(MetricReport)


@dataclass(frozen=True, slots=True)
class CurveFiles:
    """Files below one folder. All methods block."""

    folder: Path

    def read(self, job: str) -> Lines:
        """Return the lines of a job; empty when there is no file. Errors: OSError."""
        return remade(_read_reports(self._file(job)))

    def append(self, job: str, reports: Sequence[MetricReport], most: int) -> bool:
        """Append reports unless the file would have more than ``most`` bytes; return whether.

        Errors: OSError.
        """
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = b"".join(_ENCODER.encode(it) + b"\n" for it in reports)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._file(job), flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size + len(data) > most:
                return False
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # a crash cut off the last line
            _write(descriptor, data, size)
            return True
        finally:
            os.close(descriptor)

    def rewrite(self, job: str, lines: Lines) -> int:
        """Rewrite a file with the folded lines and return its size in bytes. Errors: OSError."""
        data = b"".join(_ENCODER.encode(it) + b"\n" for it in as_reports(lines))
        whole_files.write(self._file(job), data)
        return len(data)

    def fold(self, job: str) -> None:
        """Rewrite a file with its folded lines, if it exists. Errors: OSError."""
        if lines := self.read(job):
            self.rewrite(job, lines)

    def remove(self, job: str) -> None:
        """Delete the file of a job, if it exists. Errors: OSError."""
        self._file(job).unlink(missing_ok=True)

    def _file(self, job: str) -> Path:
        name = f"{job}.jsonl"
        if not _FILE.fullmatch(name):
            raise ValueError(f"{job!r} is not a job id")
        return self.folder / name


def copy_into(curves: Path, folder: Path) -> int:
    """Copy all complete lines into a folder and return the number of files. Errors: OSError."""
    copied = 0
    for file in sorted(curves.glob("*.jsonl")):
        with contextlib.suppress(FileNotFoundError):  # the job was removed meanwhile
            data = file.read_bytes()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            target = folder / file.name
            target.write_bytes(data[: data.rfind(b"\n") + 1])
            target.chmod(0o600)
            copied += 1
    return copied


def put_back(copy: Path, curves: Path) -> int:
    """Restore missing files and return their number. Errors: OSError."""
    missing = [it for it in sorted(copy.glob("*.jsonl")) if not (curves / it.name).exists()]
    for file in missing:
        curves.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = curves / f".{file.name}.restored"
        shutil.copyfile(file, new)
        new.chmod(0o600)
        new.replace(curves / file.name)
    return len(missing)


def _read_reports(file: Path) -> Iterable[MetricReport]:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return
    for line in data.splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            yield _DECODER.decode(line)


def _write(descriptor: int, data: bytes, before: int) -> None:
    """Append all bytes or none, without a flush: a crash may lose the newest points."""
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, before)
        raise
