"""Download of a job's results into a folder that the job itself could not reach."""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import IO

from benchpool_scheduler.client.aio import AsyncClient
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract.path_limits import beyond
from benchpool_scheduler.errors import InvalidInput

RESULTS = "benchpool-results"
"""Name of the results folder beside the submitted files. It contains one folder per job."""


def folder_of(output_dir: str | None, here: Path, job: str) -> Path:
    """Return the folder for the results of a job: the one named at submission.

    If the submission's folder is not on this machine, the result has the same name below ``here``.

    Args:
        output_dir: ``output_dir`` of the submission. It is used only inside a ``RESULTS`` folder.
        job: ID of the job.

    >>> folder_of("/no/such/folder/benchpool-results/train-1f2e3d4c", Path("/h"), "9x").as_posix()
    '/h/benchpool-results/train-1f2e3d4c'
    >>> folder_of("/etc/cron.d", Path("/h"), "01hzxk8qj9v4").as_posix()
    '/h/benchpool-results/01hzxk8q'
    """
    named = PurePath(output_dir or "")
    if named.parent.name != RESULTS or not named.is_absolute() or ".." in named.parts:
        return here / RESULTS / job[:8]
    sent_from = Path(named.parent.parent)
    return (sent_from if sent_from.is_dir() else here) / RESULTS / named.name


def fetch(client: Client, job: str, folder: Path, workers: int = 1) -> list[str]:
    """Unpack the results sent by a job's workers into a folder, and return their sorted paths.

    Args:
        folder: Target, created if there are results. Existing files of the same name are replaced.

    Errors: NotFound for the job. InvalidInput for a file that is not an archive, would expand, is
    nested too deeply or leaves the folder, and for a folder that cannot be written.
    """
    found: set[str] = set()
    for worker in range(workers):
        with tempfile.TemporaryFile() as file:
            while piece := client.results(job, worker=worker, offset=file.tell()):
                file.write(piece)
            found |= _unpack(file, folder)
    return sorted(found)


async def fetch_async(client: AsyncClient, job: str, folder: Path, workers: int = 1) -> list[str]:
    """Do the same as ``fetch`` with an asynchronous client."""
    found: set[str] = set()
    for worker in range(workers):
        with tempfile.TemporaryFile() as file:
            while piece := await client.results(job, worker=worker, offset=file.tell()):
                await asyncio.to_thread(file.write, piece)
            found |= await asyncio.to_thread(_unpack, file, folder)
    return sorted(found)


def _unpack(file: IO[bytes], folder: Path) -> set[str]:
    length = file.tell()
    if not length:
        return set()
    file.seek(0)
    # "r:" instead of "r": benchpool's archives are not compressed, and others could expand
    # endlessly.
    with _translated_errors(folder), tarfile.open(fileobj=file, mode="r:") as packed:
        members = [one for one in packed.getmembers() if one.isfile() or one.isdir()]
        _fits(members, length)
        for member in members:
            _check_depth(member.name)
        places = [_inside(folder, one.name) for one in members]
        for member, place in zip(members, places, strict=True):
            _lay(packed, member, place)
        return {one.name for one in members if one.isfile()}


def _fits(members: Sequence[tarfile.TarInfo], length: int) -> None:
    """Refuse content larger than the archive. ``length``: bytes of the archive."""
    large = sum(one.size for one in members)
    if large > length or any(one.issparse() or one.size < 0 for one in members):
        raise InvalidInput(
            f"The results would take {large} bytes, but {length} were sent. Nothing was unpacked. "
            "The job's log shows where it saved.",
            code="results-damaged",
            numbers={"bytes": large, "sent": length},
        )


def _check_depth(name: str) -> None:
    """Refuse a path that is too long or too deep for a folder. Errors: InvalidInput."""
    wrong = beyond(name)
    if wrong is not None:
        raise InvalidInput(
            f"The results have a file {name[:100]!r}, which {wrong}. Nothing was unpacked. The "
            "job's log shows where it saved.",
            code="results-damaged",
        )


def _inside(folder: Path, name: str) -> Path:
    """Return the target of a member. It must be inside the folder, even through existing links."""
    target, inner = folder / name, PurePosixPath(name)
    leads_out = inner.is_absolute() or ".." in inner.parts
    if leads_out or not target.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput(
            f"The results have a file {name[:200]!r}, which is outside of their folder. Nothing "
            "was unpacked. The job's log shows where it saved.",
            code="results-damaged",
        )
    return target


def _lay(packed: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    # Without `extractall(filter="data")`, which Python 3.11.2 of Debian 12 does not have.
    content = packed.extractfile(member)
    if content is None:
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    with content, target.open("wb") as file:
        shutil.copyfileobj(content, file)
    if member.mode & 0o100:
        target.chmod(target.stat().st_mode | 0o100)
    os.utime(target, (member.mtime, member.mtime))


@contextmanager
def _translated_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except RecursionError as deep:
        raise InvalidInput(
            "The results cannot be unpacked (headers nested too deep). The job's log shows where "
            "it saved.",
            code="results-damaged",
        ) from deep
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as wrong:
        raise InvalidInput(
            f"The results cannot be unpacked ({wrong}). The job's log shows where it saved.",
            code="results-damaged",
        ) from wrong
    except OSError as failed:
        raise InvalidInput(
            f"The results cannot be written to {folder} ({failed.strerror}). Make room, or give "
            "another folder.",
            code="results-not-written",
        ) from failed
