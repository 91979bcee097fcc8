"""Extraction of a backup's tar file, with limits on bytes, members and free disk space.

Only members with a known name are written. A compressed file can expand a thousandfold, so its
decompressed bytes are counted while they are read.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import data_size

MOST_MEMBERS = 1_000_000
"""Maximum number of members; a copy has one for each uploaded file of an unfinished job."""
MOST_GROWTH = 100
"""Maximum number of decompressed bytes per byte of a compressed archive."""
ALWAYS_ALLOWED = 1024**3
"""Decompressed bytes that are allowed for any archive."""
MOST_HEADER = 16 * 1024**2
"""Maximum size of one read in bytes; only a member's header could need more."""
KEPT_FREE = 256 * 1024**2
"""Minimum free space on the disk, in bytes."""
PIECE = 1024**2
"""Size of one copied piece, in bytes."""

FAULTS = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, RecursionError)
"""Exceptions of a damaged archive, besides OSError."""

_OPENERS: dict[bytes, Callable[[IO[bytes]], object]] = {
    b"\x1f\x8b": gzip.open,
    b"BZ": bz2.open,
    b"\xfd7": lzma.open,
}


def name_of(copy: str) -> str:
    """Return a copy's name for messages.

    >>> name_of("-"), name_of("monday.tar")
    ('standard input', 'monday.tar')
    """
    return "standard input" if copy == "-" else copy


def unpack(copy: str, folder: Path, is_known: Callable[[str], bool]) -> None:
    """Extract the known files of an archive into a folder.

    Args:
        copy: A tar file, compressed or not; ``-`` reads an uncompressed one from standard input.
        is_known: Returns whether a member of this name belongs to a copy.

    Errors: InvalidInput ``copy`` when it cannot be read, or exceeds a limit.
    """
    named = name_of(copy)
    with _reported(named), _opened(copy) as tar:
        kept: Any = tar
        members, total = 0, 0
        room = shutil.disk_usage(folder).free - KEPT_FREE
        while (member := tar.next()) is not None:
            kept.members = []  # not needed again, and a million members take a gigabyte
            members += 1
            if members > MOST_MEMBERS:
                raise _too_large(f"{named} has more than {MOST_MEMBERS} entries", MOST_MEMBERS)
            content = tar.extractfile(member) if member.isreg() and is_known(member.name) else None
            if content is None:
                continue
            total += member.size
            if total > room:
                raise _too_large(
                    f"{named} needs more than the {data_size(max(room, 0))} that the disk of "
                    f"{folder.parent} has free beyond a reserve of {data_size(KEPT_FREE)}, at "
                    f"entry {member.name}",
                    max(room, 0),
                )
            with _written(named, member.name, folder):
                _write(content, folder / member.name)


def _write(content: IO[bytes], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with target.open("wb") as file:
        while piece := content.read(PIECE):
            file.write(piece)


@contextmanager
def _opened(copy: str) -> Iterator[tarfile.TarFile]:
    if copy == "-":
        with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as tar:
            yield tar
        return
    path = Path(copy).expanduser()
    with path.open("rb") as file:
        opener = _OPENERS.get(file.read(2))
        file.seek(0)
        if opener is None:
            with tarfile.open(fileobj=file, mode="r:") as tar:
                yield tar
            return
        most = max(ALWAYS_ALLOWED, MOST_GROWTH * path.stat().st_size)
        bounded = _BoundedReader(copy, cast("IO[bytes]", opener(file)), most)
        with tarfile.open(fileobj=cast("IO[bytes]", bounded), mode="r:") as tar:
            yield tar
        while bounded.read(PIECE):
            pass  # the checksum is at the end


class _BoundedReader:
    """Reader of a compressed archive, up to a limit.

    Args:
        most: Limit in decompressed bytes.
    """

    def __init__(self, copy: str, content: IO[bytes], most: int) -> None:
        self._copy = copy
        self._content = content
        self._most = most

    def read(self, size: int) -> bytes:
        """Return the next bytes. Errors: InvalidInput when they exceed a limit."""
        if size > MOST_HEADER:
            raise _too_large(
                f"{self._copy} has a header of {size} bytes; the limit is {MOST_HEADER}",
                MOST_HEADER,
            )
        piece = self._content.read(size)
        self._check(self._content.tell())
        return piece

    def seek(self, place: int) -> int:
        """Move to a position, decompressing the bytes before it. Errors: as ``read``."""
        self._check(place)
        return self._content.seek(place)

    def tell(self) -> int:
        """Return the current position."""
        return self._content.tell()

    def _check(self, place: int) -> None:
        if place > self._most:
            raise _too_large(
                f"{self._copy} unpacks to more than {data_size(self._most)}; the limit is "
                f"{MOST_GROWTH} times its own size or {data_size(ALWAYS_ALLOWED)}",
                self._most,
            )


def _too_large(what: str, limit: int) -> InvalidInput:
    return InvalidInput(
        f"{what}. Nothing was changed. If `benchpool backup` made it, unpack it yourself and name "
        "the folder.",
        code="copy-too-large",
        field="copy",
        numbers={"limit": limit},
    )


@contextmanager
def _written(copy: str, member: str, folder: Path) -> Iterator[None]:
    """Report a member that cannot be written, by its name in the archive."""
    try:
        yield
    except OSError as failed:
        raise InvalidInput(
            f"{member} of {copy} cannot be unpacked on the disk of {folder.parent} "
            f"({failed.strerror or 'the archive is damaged'}). Nothing was changed. Free space "
            "there, or name another copy.",
            field="copy",
        ) from failed


@contextmanager
def _reported(copy: str) -> Iterator[None]:
    try:
        yield
    except RecursionError as deep:
        raise _unreadable(copy, "its headers are nested too deep") from deep
    except OSError as failed:
        raise _unreadable(copy, failed.strerror or str(failed)) from failed
    except FAULTS as wrong:
        raise _unreadable(copy, str(wrong)) from wrong


def _unreadable(copy: str, why: str) -> InvalidInput:
    return InvalidInput(
        f"{copy} cannot be read as a copy ({why}). Nothing was changed. Name a folder or a tar "
        "file that `benchpool backup` made.",
        field="copy",
    )
