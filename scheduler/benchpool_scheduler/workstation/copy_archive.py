"""The tar file of a copy, unpacked within bounds: bytes, members and the disk's free space.

Of its members only those with a known name are written. A compressed file can hold a thousand
times its own bytes, so the bytes that come out of it are counted while they are read.
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
"""Members of an archive; a copy has one for each uploaded file of a job that has not ended."""
MOST_GROWTH = 100
"""Unpacked bytes for each byte of a compressed archive."""
ALWAYS_ALLOWED = 1024**3
"""Unpacked bytes that are allowed however small the archive is."""
MOST_HEADER = 16 * 1024**2
"""Bytes that are read at once; only a header of a member could ask for more."""
KEPT_FREE = 256 * 1024**2
"""Bytes that stay free on the disk."""
PIECE = 1024**2
"""Bytes that are copied at once."""

FAULTS = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, ValueError, RecursionError)
"""What a damaged archive raises, beside OSError."""

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
    """Write the known files of an archive into a folder.

    Args:
        copy: A tar file, compressed or not; ``-`` reads one that is not from standard input.
        is_known: Whether a member of this name belongs to a copy.

    Errors: InvalidInput ``copy``: it cannot be read, or exceeds a bound.
    """
    named = name_of(copy)
    with _reported(named), _opened(copy) as tar:
        kept: Any = tar
        members, total = 0, 0
        room = shutil.disk_usage(folder).free - KEPT_FREE
        while (member := tar.next()) is not None:
            kept.members = []  # each is needed once, and a million of them take a gigabyte
            members += 1
            if members > MOST_MEMBERS:
                raise _too_large(f"{named} has more than {MOST_MEMBERS} members", MOST_MEMBERS)
            content = tar.extractfile(member) if member.isreg() and is_known(member.name) else None
            if content is None:
                continue
            total += member.size
            if total > room:
                raise _too_large(
                    f"{named} holds more than the {data_size(max(room, 0))} that the disk of "
                    f"{folder.parent} has free beside {data_size(KEPT_FREE)}, at its member "
                    f"{member.name}",
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
            pass  # its checksum lies at its end


class _BoundedReader:
    """What comes out of a compressed archive, up to a bound.

    Args:
        most: Bytes.
    """

    def __init__(self, copy: str, content: IO[bytes], most: int) -> None:
        self._copy = copy
        self._content = content
        self._most = most

    def read(self, size: int) -> bytes:
        """Return the next bytes. Errors: InvalidInput, where they exceed a bound."""
        if size > MOST_HEADER:
            raise _too_large(
                f"{self._copy} has a header of {size} bytes; {MOST_HEADER} are allowed", MOST_HEADER
            )
        piece = self._content.read(size)
        self._check(self._content.tell())
        return piece

    def seek(self, place: int) -> int:
        """Go to a place; what lies before it is decompressed. Errors: as ``read``."""
        self._check(place)
        return self._content.seek(place)

    def tell(self) -> int:
        """Return how many bytes lie before."""
        return self._content.tell()

    def _check(self, place: int) -> None:
        if place > self._most:
            raise _too_large(
                f"{self._copy} unpacks to more than {data_size(self._most)}, at most "
                f"{MOST_GROWTH} times its own size or {data_size(ALWAYS_ALLOWED)}",
                self._most,
            )


def _too_large(what: str, limit: int) -> InvalidInput:
    return InvalidInput(
        f"{what}: nothing was changed. If it is what `benchpool backup` made, unpack it yourself "
        "and name the folder.",
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
            f"({failed.strerror or 'the archive is damaged'}): nothing was changed. Make room "
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
        f"{copy} cannot be read as a copy ({why}): nothing was changed. Name a folder or a tar "
        "file that `benchpool backup` made.",
        field="copy",
    )
