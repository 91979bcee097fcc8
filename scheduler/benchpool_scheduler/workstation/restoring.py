"""``benchpool backup`` and ``benchpool restore``: a copy taken away, and put back.

A copy is a folder with ``pool.sqlite``, ``jupyterhub.sqlite`` and ``benchpool.yaml``, or the same
as a tar file. What is replaced stays beside it under another name.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.contract import BackupMade
from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.store import copies, hold
from benchpool_scheduler.store.checking import fault_of
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.state import StateFolder

FILES = ("pool.sqlite", "jupyterhub.sqlite", "benchpool.yaml")
DATABASES = FILES[:2]


def take(made: BackupMade, target: str) -> None:
    """Put a copy that the service made into a folder, or as a tar file on standard output.

    Errors: InvalidInput: the folder is not empty; Unavailable: it cannot be written.
    """
    source = Path(made.folder)
    try:
        if target == "-":
            with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
                for name in sorted(made.files):
                    tar.add(source / name, arcname=name, recursive=False)
            sys.stdout.buffer.flush()
            return
        folder = Path(target).expanduser()
        if folder.exists() and any(folder.iterdir()):
            raise InvalidInput(
                f"{folder} is not empty: name a folder that is, or a new one.", field="to"
            )
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in sorted(made.files):
            shutil.copyfile(source / name, folder / name)
            (folder / name).chmod(0o600)
    except OSError as failed:
        raise Unavailable(
            f"The copy could not be put into {target} ({failed}); it lies in {source} until the "
            "next one is asked for.",
            code="copy-failed",
        ) from failed


def restore(state: Path, copy: str) -> list[str]:
    """Put a copy back; return what was done, a sentence for each file.

    Errors: InvalidInput: it is no whole copy, or of a newer release; Unavailable: benchpool runs.
    """
    folder = states.prepare(state)
    with states.alone(folder), tempfile.TemporaryDirectory(dir=folder.path) as unpacked:
        source = _unpacked(copy, Path(unpacked))
        there = [name for name in FILES if (source / name).is_file()]
        if "pool.sqlite" not in there:
            raise InvalidInput(
                f"{copy} has no pool.sqlite: name a folder or a tar file that `benchpool backup` "
                "made, or one in the folder backups/ of the state folder.",
                field="copy",
            )
        _check(source, there)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        return [_put(source / name, _place(folder)(name), stamp) for name in there]


def _place(folder: StateFolder) -> Callable[[str], Path]:
    places = {
        "pool.sqlite": folder.path / "scheduler" / "pool.sqlite",
        "jupyterhub.sqlite": folder.hub / "jupyterhub.sqlite",
        "benchpool.yaml": folder.config,
    }
    return places.__getitem__


def _unpacked(copy: str, folder: Path) -> Path:
    """Return the folder of a copy; of a tar file only the known files are read."""
    path = Path(copy).expanduser()
    if copy != "-" and path.is_dir():
        return path
    try:
        with (
            tarfile.open(fileobj=sys.stdin.buffer, mode="r|") if copy == "-" else tarfile.open(path)
        ) as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if member.name in FILES and content is not None:
                    with (folder / member.name).open("wb") as file:
                        shutil.copyfileobj(content, file)
    except (OSError, tarfile.TarError) as failed:
        raise InvalidInput(f"{copy} cannot be read as a copy ({failed}).", field="copy") from failed
    return folder


def _check(source: Path, there: list[str]) -> None:
    for name in DATABASES:
        fault = fault_of(source / name) if name in there else None
        if fault is not None:
            raise InvalidInput(
                f"{source / name} is damaged ({fault}): nothing was changed; name another copy.",
                field="copy",
            )
    version = copies.version_of(source / "pool.sqlite")
    if not copies.is_known(version):
        raise InvalidInput(
            f"{source / 'pool.sqlite'} has version {version}, which this release of benchpool does "
            "not know: nothing was changed; install the release that made it, or name another "
            "copy.",
            field="copy",
            numbers={"version": version},
        )


def _put(source: Path, target: Path, stamp: str) -> str:
    """Put a file in place whole; what was there stays beside it."""
    new = target.with_name(f".{target.name}.restored")
    shutil.copyfile(source, new)
    new.chmod(0o600)
    aside = target.with_name(f"{target.name}.before-{stamp}")
    was = target.exists()
    for suffix in ("", "-wal", "-shm"):
        old = Path(f"{target}{suffix}")
        if old.exists():
            old.rename(f"{aside}{suffix}")
    new.replace(target)
    if target.name == "pool.sqlite":
        hold.release(target)
    return f"{target} was put back" + (f"; what was there is {aside}." if was else ".")
