"""The curves of jobs: a file of lines for each job, which grows with what the job reports.

    curves/7k2m….jsonl               what was told, in its order; a line is a ``MetricReport``

What a file says is folded by the rules of ``benchpool_scheduler.curves``. One that has grown far
beyond what is kept of it is written anew. A line that a crash cut off is left out.
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

from benchpool_scheduler.curves.series import Lines, MetricReport, as_told, remade
from benchpool_scheduler.store import whole_files

FOLDER = "curves"
NAME = re.compile(rf"{FOLDER}/[a-z0-9]{{1,64}}\.jsonl")
"""Where these files lie in a copy."""
_FILE = re.compile(r"[a-z0-9]{1,64}\.jsonl")

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(MetricReport)


@dataclass(frozen=True, slots=True)
class CurveFiles:
    """The files below one folder. Everything here blocks."""

    folder: Path

    def read(self, job: str) -> Lines:
        """Return the lines of a job; none where there is no file. Errors: OSError."""
        return remade(_told(self._file(job)))

    def append(self, job: str, told: Sequence[MetricReport]) -> int:
        """Add what was told; return the size of the file in bytes. Errors: OSError."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        data = b"".join(_ENCODER.encode(it) + b"\n" for it in told)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._file(job), flags, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                data = b"\n" + data  # a crash cut the last line off
            _write(descriptor, data, size)
            return size + len(data)
        finally:
            os.close(descriptor)

    def rewrite(self, job: str, lines: Lines) -> int:
        """Write a file anew with what is kept; return its size in bytes. Errors: OSError."""
        data = b"".join(_ENCODER.encode(it) + b"\n" for it in as_told(lines))
        whole_files.write(self._file(job), data)
        return len(data)

    def remove(self, job: str) -> None:
        """Remove the file of a job; no harm where there is none. Errors: OSError."""
        self._file(job).unlink(missing_ok=True)

    def _file(self, job: str) -> Path:
        name = f"{job}.jsonl"
        if not _FILE.fullmatch(name):
            raise ValueError(f"{job!r} is not a job id")
        return self.folder / name


def copy_into(curves: Path, folder: Path) -> int:
    """Put all whole lines of these files into a folder; return how many files. Errors: OSError."""
    copied = 0
    for file in sorted(curves.glob("*.jsonl")):
        with contextlib.suppress(FileNotFoundError):  # its job was removed meanwhile
            data = file.read_bytes()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            target = folder / file.name
            target.write_bytes(data[: data.rfind(b"\n") + 1])
            target.chmod(0o600)
            copied += 1
    return copied


def put_back(copy: Path, curves: Path) -> int:
    """Put files back that are not there; return how many. Errors: OSError."""
    missing = [it for it in sorted(copy.glob("*.jsonl")) if not (curves / it.name).exists()]
    for file in missing:
        curves.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = curves / f".{file.name}.restored"
        shutil.copyfile(file, new)
        new.chmod(0o600)
        new.replace(curves / file.name)
    return len(missing)


def _told(file: Path) -> Iterable[MetricReport]:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return
    for line in data.splitlines():
        with contextlib.suppress(msgspec.DecodeError):
            yield _DECODER.decode(line)


def _write(descriptor: int, data: bytes, before: int) -> None:
    """Add bytes, all or none. It is not waited for the disk: a crash may cost the newest points."""
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError:
        os.ftruncate(descriptor, before)
        raise
