"""Folders packed into one file: a checkpoint or results that are sent through the scheduler.

Only folders and regular files are packed and unpacked, so no link can lead outside the folder.
"""

from __future__ import annotations

import os
import shutil
import tarfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SKIPPED = frozenset({"__pycache__", ".ipynb_checkpoints", ".git"})
MOST_DEPTH = 128
"""Most folders above a file, as in ``contract.path_limits``, which an agent cannot import."""
MOST_PATH = 2048
"""Most bytes in a path, as in ``contract.path_limits``."""


class TooMuch(Exception):
    """A folder exceeds the size or depth limit; the text is for the user."""


class Damaged(Exception):
    """The file is not an archive of ``pack``, or would grow when it is unpacked."""


def size(folder: str) -> int:
    """Return the bytes of all files below a folder. Raises TooMuch if it is nested too deep."""
    total = 0
    for here, files in _walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(here, name)).st_size
            except OSError:
                continue
    return total


def pack(folder: str, target: str, most_bytes: int, what: str) -> int:
    """Pack a folder into a file and return its size; 0 if it contains no files.

    Raises:
        TooMuch: More than ``most_bytes``, or nested too deep.
        OSError: A file could not be read or written.
    """
    _bound(size(folder), most_bytes, what)
    count = 0
    with tarfile.open(target, "w") as tar:
        for here, files in _walk(folder):
            for name in files:
                path = os.path.join(here, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                try:
                    tar.add(path, os.path.relpath(path, folder), recursive=False)
                    count += 1
                except FileNotFoundError:
                    continue  # it was replaced meanwhile
    packed = os.stat(target).st_size
    _bound(packed, most_bytes, what)  # many small files need more bytes when packed
    return packed if count else 0


def _walk(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each folder with the names of its files. Raises TooMuch if one is nested too deep."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        below = os.path.relpath(here, folder)
        wrong = _beyond(f"{below}/")
        if wrong is not None:
            raise TooMuch(f"a folder in it {wrong}: {below[:100]}...; make the job save elsewhere")
        yield here, sorted(files)


def _beyond(name: str) -> str | None:
    """Return the limit that the path of a member exceeds, as a text, or None."""
    depth, length = name.count("/"), len(os.fsencode(name))
    if depth > MOST_DEPTH:
        return f"is {depth} folders deep; the limit is {MOST_DEPTH}"
    if length > MOST_PATH:
        return f"has a path of {length} bytes; the limit is {MOST_PATH}"
    return None


def _bound(total: int, most_bytes: int, what: str) -> None:
    if total > most_bytes:
        raise TooMuch(
            f"the {what} has {total} bytes and the limit is {most_bytes}; make the job save to a "
            "volume that its pods mount"
        )


def unpack(packed: str, folder: str) -> None:
    """Unpack an archive over a folder, replacing files of the same name.

    Raises:
        Damaged: The file is not an archive of ``pack``, would grow, or is nested too deep. All
            members are checked before the first is written.
        OSError: A file could not be read or written.
    """
    try:
        _unpack(packed, folder)
    except RecursionError as deep:
        raise Damaged("its headers are nested too deep") from deep
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as wrong:
        raise Damaged(str(wrong)) from wrong


def _unpack(packed: str, folder: str) -> None:
    # "r:" rather than "r": a compressed file is not an archive of ``pack``, and could grow without
    # limit.
    with tarfile.open(packed, "r:") as tar:
        members = tar.getmembers()
        large = sum(one.size for one in members if one.isfile())
        if large > os.stat(packed).st_size or any(
            one.issparse() or one.size < 0 for one in members
        ):
            raise Damaged(f"it would unpack to {large} bytes but has {os.stat(packed).st_size}")
        for one in members:
            wrong = _beyond(one.name)
            if wrong is not None:
                raise Damaged(f"a file {wrong}: {one.name[:100]}...")
        for one in members:
            parts = one.name.split("/")
            if not one.isfile() or one.name.startswith("/") or ".." in parts:
                continue
            target = os.path.join(folder, *parts)
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            source = tar.extractfile(one)
            if source is None:
                continue
            temporary = f"{target}.benchpool"
            with open(temporary, "wb") as file:
                shutil.copyfileobj(source, file)
            os.chmod(temporary, 0o700 if one.mode & 0o100 else 0o600)
            os.utime(temporary, (one.mtime, one.mtime))
            os.replace(temporary, target)
