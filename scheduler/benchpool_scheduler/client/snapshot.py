"""Files of a folder that are sent with a job.

``take`` lists and hashes files. ``upload`` sends missing contents. Links are followed
only inside the folder. Pipes, sockets and devices are never opened. Left-out files are reported
with a reason. A file named by the caller (``must``) is either sent or refused with an error.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from benchpool_scheduler.client import exclusions
from benchpool_scheduler.client.aio import AsyncClient
from benchpool_scheduler.client.exclusions import Exclusions
from benchpool_scheduler.client.left_out import LeftOut, sentences, shown, why_name
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import SnapshotFile
from benchpool_scheduler.errors import InvalidInput, TooLarge
from benchpool_scheduler.phrases import data_size

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Limits of a snapshot, in bytes and files."""

    file_bytes: int = 256 * MIB
    total_bytes: int = 1024 * MIB
    files: int = 20_000


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
    """Files to send.

    Attributes:
        files: Files for ``JobSubmission.files``, sorted by path.
        contents: Path of the content for each hash.
        left_out: Files that are not sent, at most ``MOST_LISTED`` entries.
        counts: Number of left-out files and folders, by reason.
    """

    files: tuple[SnapshotFile, ...]
    contents: Mapping[str, Path]
    left_out: tuple[LeftOut, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def bytes(self) -> int:
        """Size of all files together, in bytes."""
        return sum(file.size for file in self.files)

    def sentences(self) -> list[str]:
        """Return what is sent and what is left out (``left_out.sentences``)."""
        return sentences(len(self.files), self.bytes, self.left_out, self.counts)


@dataclass(frozen=True, slots=True)
class Survey:
    """Preview of a snapshot: number of files, their bytes, and the files left out."""

    count: int
    bytes: int
    left_out: tuple[LeftOut, ...]
    counts: Counter[str] = field(default_factory=Counter)

    def sentences(self) -> list[str]:
        """Return what is sent and what is left out (``left_out.sentences``)."""
        return sentences(self.count, self.bytes, self.left_out, self.counts)


CHANGED = frozenset({"hash-differs", "upload-grew"})
"""Codes of the service's refusal of a file that changed after it was hashed."""

MOST_LISTED = 1000
_NAMED = 3


def take(
    root: Path, *, must: Sequence[str] = (), limits: SnapshotLimits | None = None
) -> FolderSnapshot:
    """List and hash the files of a folder.

    Args:
        root: Folder to send.
        must: Paths below it that are sent even if a rule would leave them out.
        limits: Limits, or None for the defaults.

    Raises:
        InvalidInput: A path of ``must`` is not a file below the folder.
        TooLarge: There are too many files or bytes. The message names the largest.
    """
    root = root.resolve()
    found, walk = _found(root, must, limits or SnapshotLimits())
    return _hashed(found, walk, {str(_named(root, name)[1]) for name in must})


def survey(root: Path, *, must: Sequence[str] = (), limits: SnapshotLimits | None = None) -> Survey:
    """Return what ``take`` would send, without reading files. Arguments and errors as there."""
    root = root.resolve()
    found, walk = _found(root, must, limits or SnapshotLimits())
    walk.take_back({str(_named(root, name)[1]) for name in must})
    total = sum(path.stat().st_size for path in found.values())
    return Survey(len(found), total, tuple(walk.left_out), walk.counts)


def upload(client: Client, contents: Mapping[str, Path | bytes]) -> int:
    """Send the contents that the service lacks, and return their number.

    Raises:
        InvalidInput: A file has changed since it was hashed. The message names it.
    """
    missing = client.missing_objects(list(contents)).sha256 if contents else []
    for sha256 in missing:
        with _naming(contents[sha256]):
            client.put_object(sha256, contents[sha256])
    return len(missing)


async def upload_async(client: AsyncClient, contents: Mapping[str, Path | bytes]) -> int:
    """Do the same as ``upload`` with an asynchronous client."""
    missing = (await client.missing_objects(list(contents))).sha256 if contents else []
    for sha256 in missing:
        with _naming(contents[sha256]):
            await client.put_object(sha256, contents[sha256])
    return len(missing)


@contextmanager
def _naming(content: Path | bytes) -> Iterator[None]:
    """Name the file in the error if it was changed between its hash and its upload."""
    try:
        yield
    except (InvalidInput, TooLarge) as refused:
        if refused.code not in CHANGED or isinstance(content, bytes):
            raise
        raise InvalidInput(
            f"{content} changed while it was being sent. Send again when nothing writes to it, or "
            f"list it in {exclusions.IGNORE_FILE} beside your code if the job does not need it.",
            code="file-changed",
            field="files",
        ) from refused


def _found(
    root: Path, must: Sequence[str], bounds: SnapshotLimits
) -> tuple[dict[str, Path], _Walk]:
    """Return the files by relative path, within the limits."""
    walk = _Walk(root, bounds)
    found = dict(walk.files(root, PurePosixPath(), (root,)))
    for name in must:
        path, inside = _named(root, name)
        found[str(inside)] = path
    _check_sizes(root, found, bounds)
    return found, walk


@dataclass(slots=True)
class _Walk:
    """Walk down a folder, with a count that refuses a huge folder early."""

    root: Path
    limits: SnapshotLimits
    left_out: list[LeftOut] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    rules: Exclusions = field(init=False)
    seen: int = 0

    def __post_init__(self) -> None:
        self.rules = Exclusions(self.root)

    def files(
        self, folder: Path, inside: PurePosixPath, open_: tuple[Path, ...]
    ) -> Iterator[tuple[str, Path]]:
        """Yield relative and absolute path of each file. ``open_``: resolved parent folders."""
        self.rules.enter(folder, inside)
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as failed:
            self.leave_out(inside, f"cannot be read ({failed.strerror})")
            return
        for entry in entries:
            yield from self._entry(Path(entry.path), inside / entry.name, open_)

    def _entry(
        self, path: Path, inside: PurePosixPath, open_: tuple[Path, ...]
    ) -> Iterator[tuple[str, Path]]:
        try:
            real, mode = path.resolve(strict=True), path.stat().st_mode
        except (OSError, RuntimeError):
            self.leave_out(inside, "a broken link")
            return
        why = self._why(path, real, inside, mode, open_)
        if why is not None:
            self.leave_out(inside, why)
        elif stat.S_ISDIR(mode):
            yield from self.files(path, inside, (*open_, real))
        else:
            self._count()
            yield str(inside), path

    def _why(
        self, path: Path, real: Path, inside: PurePosixPath, mode: int, open_: tuple[Path, ...]
    ) -> str | None:
        folder = stat.S_ISDIR(mode)
        wrong = why_name(inside.name)
        if wrong is not None:
            return wrong
        if not real.is_relative_to(self.root):
            return "a link that leaves the folder"
        if not folder and not stat.S_ISREG(mode):
            return "no plain file"
        if folder and real in open_:
            return "a link to a folder above it"
        if folder and exclusions.is_environment(path):
            return exclusions.ENVIRONMENT
        why = self.rules.why(inside, folder=folder)
        if why is None and not folder and path.stat().st_size > self.limits.file_bytes:
            return (
                f"{data_size(path.stat().st_size)}, the limit for one file is "
                f"{data_size(self.limits.file_bytes)}"
            )
        return why

    def _count(self) -> None:
        self.seen += 1
        if self.seen > self.limits.files:
            raise TooLarge(
                f"The folder {self.root.name or '/'} has more than {self.limits.files} files. "
                "Start in the project's own folder, or list what the job does not need in "
                f"{exclusions.IGNORE_FILE}.",
                code="snapshot-files",
                field="files",
                numbers={"limit": self.limits.files},
            )

    def leave_out(self, inside: PurePosixPath, why: str) -> None:
        left = LeftOut(shown(str(inside)), why)
        self.counts[left.reason] += 1
        if len(self.left_out) < MOST_LISTED:
            self.left_out.append(left)

    def take_back(self, must: set[str]) -> None:
        """Remove the files named by the caller from the left-out ones."""
        back = {shown(path) for path in must}
        self.counts -= Counter(each.reason for each in self.left_out if each.path in back)
        self.left_out = [each for each in self.left_out if each.path not in back]


def _named(root: Path, name: str) -> tuple[Path, PurePosixPath]:
    """Return absolute and relative path of a file named by the caller."""
    path = root / name
    real = path.resolve()
    inside = Path(os.path.normpath(path))
    if not real.is_file():
        raise InvalidInput(f"There is no file {name} in {root}.", field="path")
    if not real.is_relative_to(root) or not inside.is_relative_to(root):
        raise InvalidInput(
            f"{name} is not inside {root}. Start benchpool in a folder that contains it.",
            field="path",
        )
    return path, PurePosixPath(inside.relative_to(root).as_posix())


def _check_sizes(root: Path, found: Mapping[str, Path], limits: SnapshotLimits) -> None:
    sizes = {name: path.stat().st_size for name, path in found.items()}
    total = sum(sizes.values())
    if total <= limits.total_bytes:
        return
    largest = sorted(sizes, key=lambda name: -sizes[name])[:_NAMED]
    named = ", ".join(f"{name} {data_size(sizes[name])}" for name in largest)
    raise TooLarge(
        f"The folder {root.name or '/'} has {data_size(total)} in {len(sizes)} files; the limit is "
        f"{data_size(limits.total_bytes)}. List what the job does not need in "
        f"{exclusions.IGNORE_FILE}. Largest: {named}.",
        code="snapshot-bytes",
        field="files",
        numbers={"bytes": total, "limit": limits.total_bytes, "files": len(sizes)},
    )


def _hashed(found: Mapping[str, Path], walk: _Walk, must: set[str]) -> FolderSnapshot:
    files: list[SnapshotFile] = []
    contents: dict[str, Path] = {}
    walk.take_back(must)
    for name in sorted(found):
        path = found[name]
        sha256, size, first = _digest(path)
        if exclusions.holds_private_key(first) and name not in must:
            walk.leave_out(PurePosixPath(name), "holds a private key")
            continue
        executable = bool(path.stat().st_mode & stat.S_IXUSR)
        files.append(SnapshotFile(name, sha256, size, executable))
        contents[sha256] = path
    return FolderSnapshot(tuple(files), contents, tuple(walk.left_out), walk.counts)


def _digest(path: Path) -> tuple[str, int, bytes]:
    """Return hash, size and first bytes of a file, all from one read."""
    digest, size, first = hashlib.sha256(), 0, b""
    with path.open("rb") as file:
        while piece := file.read(MIB):
            first = first or piece[:256]
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size, first
