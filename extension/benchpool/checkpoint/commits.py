r"""Checkpoints that are complete or absent.

Layout of the checkpoint folder::

    00000007/            a checkpoint: the program's files and ``benchpool.json``
    00000006/            the previous one, in case the newest is damaged
    latest               name of the newest, for users and other programs
    .writing-00000008-…  one that is being written; left behind only by a killed process

Order of a commit: the files are written aside and flushed to disk, their hashes are written to
``benchpool.json``, which is flushed too, one rename makes the checkpoint visible, the pointer is
replaced, and finally older checkpoints are removed. A process killed between any two of these steps
leaves the previous checkpoint or the new one. ``latest`` reads no pointer: it takes the newest
folder whose files have the sizes and hashes of its manifest.

If ranks that save together have no shared folder, each writes its part into the checkpoint of the
same number in its own folder, with its own manifest. The folders are joined for the next attempt.
There a checkpoint counts only if it has all parts of one commit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Optional

from benchpool.checkpoint import commit_manifest, notices, votes

POINTER = "latest"
WRITING = ".writing-"
WAIT_FOR_RANKS_S = 600.0


class CheckpointFault(RuntimeError):
    """The checkpoint could not be completed; the previous one still exists."""


def latest() -> Path | None:
    """Return the folder of the newest complete checkpoint, or None.

    Every file is compared with its hash. A damaged checkpoint is reported on standard error and
    skipped. Call it when resuming, not in each step.
    """
    folder = notices.directory()
    if folder is None:
        return None
    for path in reversed(_kept(folder)):
        fault = commit_manifest.fault(path)
        if fault is None:
            return path
        print(f"benchpool: checkpoint {path.name} is damaged ({fault})", file=sys.stderr)
    return None


@contextlib.contextmanager
def commit(step: int | None = None, *, keep: int = 2, together: bool = False) -> Iterator[Path]:
    """Yield a folder to save into, and make it the latest checkpoint when the block succeeds.

    If the block raises, nothing changes. With several ranks only rank 0's folder counts and the
    other ranks get a temporary one, so every rank may call it. With ``together`` all ranks save
    into one checkpoint, each under its own file names. It counts when all ranks have left the
    block.

    Args:
        step: Current step of the training; stored in the manifest.
        keep: Number of checkpoints to keep, at least 1.
        together: All ranks save their part.

    Raises:
        CheckpointFault: A rank did not finish its part in time.
        ValueError: ``keep`` is less than 1.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}: keep at least 1 checkpoint")
    folder = notices.directory()
    alone = votes.world_size() == 1 or not together
    if folder is None or (alone and votes.rank() != 0):
        with tempfile.TemporaryDirectory(prefix="benchpool-") as thrown_away:
            yield Path(thrown_away)
        return
    folder.mkdir(parents=True, exist_ok=True)
    with notices.DeferredSigterm():
        if alone:
            yield from _alone(folder, step, keep)
        elif votes.apart():
            yield from _part(folder, step, keep)
        else:
            yield from _shared(folder, step, keep)


def _alone(folder: Path, step: int | None, keep: int) -> Iterator[Path]:
    number = _next_number(folder)
    aside = folder / f"{WRITING}{number:08d}-{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    _publish(folder, aside, number, step, keep)


def _shared(folder: Path, step: int | None, keep: int) -> Iterator[Path]:
    """Yield one folder for all ranks, found by the numbers of the call and the attempt."""
    global _together
    _together += 1
    aside = folder / f"{WRITING}all-{_attempt()}-{_together}"
    done = folder / f".done-{_attempt()}-{_together}"
    aside.mkdir(exist_ok=True)
    yield aside
    for path in commit_manifest.files(aside):
        commit_manifest.flush(path)
    done.mkdir(exist_ok=True)
    (done / str(votes.rank())).touch()
    if votes.rank() == 0:
        _wait(lambda: len(list(done.iterdir())) >= votes.world_size(), _missing(done))
        _publish(folder, aside, _next_number(folder), step, keep)
        shutil.rmtree(done, ignore_errors=True)
    else:
        _wait(lambda: not done.exists(), lambda: "rank 0 to complete it")


def _part(folder: Path, step: int | None, keep: int) -> Iterator[Path]:
    """Yield a folder for this rank's part, under the number that all ranks count to."""
    global _together, _base
    if _base is None:
        _base = _newest_at_start(folder)
    _together += 1
    number, rank = _base + _together, votes.rank()
    aside = folder / f"{WRITING}all-{_attempt()}-{number}-{rank}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    yield aside
    about = {"step": step, "attempt": _attempt(), "commit": number}
    ranks = {"rank": rank, "ranks": votes.world_size()}
    name = commit_manifest.PART.format(rank=rank)
    commit_manifest.write(aside, name, {**about, **ranks})
    final = folder / f"{number:08d}"
    # The manifest is moved last: it makes the part valid.
    for path in [*commit_manifest.files(aside), aside / name]:
        target = final / path.relative_to(aside)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, target)
    shutil.rmtree(aside)
    commit_manifest.flush(final)
    commit_manifest.flush(folder)
    _point(folder, final.name)
    _remove_older(folder, max(keep, 2))  # another rank may be one behind


def _newest_at_start(folder: Path) -> int:
    """Return the newest number before this attempt. All ranks find the same."""
    known = folder / f".before-{_attempt()}"
    if not known.exists():
        aside = folder / f".before-{os.getpid()}.half"
        aside.write_text(str(_next_number(folder) - 1))
        with contextlib.suppress(FileExistsError):  # another rank of this worker was first
            os.link(aside, known)
        aside.unlink()
    return int(known.read_text())


_together = 0
_base: Optional[int] = None  # noqa: UP045 (Python 3.9)


def _attempt() -> str:
    return os.environ.get("BENCHPOOL_ATTEMPT", "1")


def _publish(folder: Path, aside: Path, number: int, step: int | None, keep: int) -> None:
    commit_manifest.write(aside, commit_manifest.WHOLE, {"step": step, "attempt": _attempt()})
    final = folder / f"{number:08d}"
    os.rename(aside, final)
    commit_manifest.flush(folder)
    _point(folder, final.name)
    _remove_older(folder, keep)


def _point(folder: Path, name: str) -> None:
    aside = folder / f".{POINTER}-{os.getpid()}"
    aside.write_text(name + "\n", "utf-8")
    commit_manifest.flush(aside)
    os.replace(aside, folder / POINTER)
    commit_manifest.flush(folder)


def _remove_older(folder: Path, keep: int) -> None:
    for path in _kept(folder)[:-keep]:
        # It is renamed first, so that a half removed checkpoint is never taken for a damaged one.
        gone = folder / f"{WRITING}gone-{path.name}"
        os.rename(path, gone)
        shutil.rmtree(gone, ignore_errors=True)
    others_write = f"{WRITING}all-{_attempt()}-"
    for path in folder.glob(f"{WRITING}*"):
        if not path.name.startswith(others_write):
            shutil.rmtree(path, ignore_errors=True)


def newest(folder: Path) -> Path | None:
    """Return the newest checkpoint without checking its content."""
    kept = _kept(folder)
    return kept[-1] if kept else None


def _kept(folder: Path) -> list[Path]:
    """Return all checkpoints, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.isdecimal() and path.is_dir())


def _next_number(folder: Path) -> int:
    kept = _kept(folder)
    return int(kept[-1].name) + 1 if kept else 1


def _missing(done: Path) -> Any:
    def text() -> str:
        here = {path.name for path in done.iterdir()}
        away = [str(rank) for rank in range(votes.world_size()) if str(rank) not in here]
        return "rank " + ", ".join(away)

    return text


def _wait(ready: Any, whom: Any) -> None:
    left = notices.remaining()
    until = time.monotonic() + (WAIT_FOR_RANKS_S if left is None else left)
    while not ready():
        if time.monotonic() > until:
            raise CheckpointFault(
                f"The checkpoint timed out waiting for {whom()}. All ranks must call "
                "commit(together=True) the same number of times. Earlier checkpoints stay valid."
            )
        time.sleep(0.02)
