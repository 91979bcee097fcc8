"""The files of a folder as they travel with a job.

``take`` lists and hashes; ``upload`` sends what the service lacks. Links are followed inside the
folder only; pipes, sockets and devices are never opened. What is left out is said with its
reason, except that a file the caller names (``must``) is always taken or refused aloud.
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
    """Bounds of a snapshot, in bytes and files."""

    file_bytes: int = 256 * MIB
    total_bytes: int = 1024 * MIB
    files: int = 20_000


@dataclass(frozen=True, slots=True)
class FolderSnapshot:
    """What travels.

    Attributes:
        files: For ``JobSubmission.files``, sorted by path.
        contents: Where the bytes of each hash lie.
        left_out: What does not travel, at most ``SAID`` entries.
        counts: How many files and folders do not, by reason.
    """

    files: tuple[SnapshotFile, ...]
    contents: Mapping[str, Path]
    left_out: tuple[LeftOut, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def bytes(self) -> int:
        """Size of all files together."""
        return sum(file.size for file in self.files)

    def sentences(self) -> list[str]:
        """Return what travels and what does not (``left_out.sentences``)."""
        return sentences(len(self.files), self.bytes, self.left_out, self.counts)


@dataclass(frozen=True, slots=True)
class Survey:
    """What would travel: how many files, their bytes, and what would not, as ``FolderSnapshot``."""

    count: int
    bytes: int
    left_out: tuple[LeftOut, ...]
    counts: Counter[str] = field(default_factory=Counter)

    def sentences(self) -> list[str]:
        """Return what travels and what does not (``left_out.sentences``)."""
        return sentences(self.count, self.bytes, self.left_out, self.counts)


CHANGED = frozenset({"hash-differs", "upload-grew"})
"""How the service refuses a file that was written to after it was hashed."""

SAID = 1000
_NAMED = 3


def take(
    root: Path, *, must: Sequence[str] = (), limits: SnapshotLimits | None = None
) -> FolderSnapshot:
    """List and hash the files of a folder.

    Args:
        root: The folder.
        must: Paths below it that are taken even where a rule would leave them out.
        limits: Bounds; the usual ones by default.

    Raises:
        InvalidInput: A path of ``must`` is no file below the folder.
        TooLarge: Too many files or bytes; the sentence names the largest.
    """
    root = root.resolve()
    found, walk = _found(root, must, limits or SnapshotLimits())
    return _hashed(found, walk, {str(_named(root, name)[1]) for name in must})


def survey(root: Path, *, must: Sequence[str] = (), limits: SnapshotLimits | None = None) -> Survey:
    """Say what ``take`` would take, without reading any file; same arguments and errors."""
    root = root.resolve()
    found, walk = _found(root, must, limits or SnapshotLimits())
    walk.take_back({str(_named(root, name)[1]) for name in must})
    total = sum(path.stat().st_size for path in found.values())
    return Survey(len(found), total, tuple(walk.left_out), walk.counts)


def upload(client: Client, contents: Mapping[str, Path | bytes]) -> int:
    """Send the contents that the service lacks; return how many were sent.

    Raises:
        InvalidInput: A file has changed since it was hashed; the sentence names it.
    """
    missing = client.missing_objects(list(contents)).sha256 if contents else []
    for sha256 in missing:
        with _naming(contents[sha256]):
            client.put_object(sha256, contents[sha256])
    return len(missing)


async def upload_async(client: AsyncClient, contents: Mapping[str, Path | bytes]) -> int:
    """Do as ``upload`` with an asynchronous client."""
    missing = (await client.missing_objects(list(contents))).sha256 if contents else []
    for sha256 in missing:
        with _naming(contents[sha256]):
            await client.put_object(sha256, contents[sha256])
    return len(missing)


@contextmanager
def _naming(content: Path | bytes) -> Iterator[None]:
    """Name the file that was written to between its hash and its upload."""
    try:
        yield
    except (InvalidInput, TooLarge) as refused:
        if refused.code not in CHANGED or isinstance(content, bytes):
            raise
        raise InvalidInput(
            f"{content} changed while it was being sent: send again when nothing writes to it, or "
            f"name it in {exclusions.IGNORE_FILE} beside your code if the job does not need it.",
            code="file-changed",
            field="files",
        ) from refused


def _found(
    root: Path, must: Sequence[str], bounds: SnapshotLimits
) -> tuple[dict[str, Path], _Walk]:
    """List the files by relative path, within the bounds."""
    walk = _Walk(root, bounds)
    found = dict(walk.files(root, PurePosixPath(), (root,)))
    for name in must:
        path, inside = _named(root, name)
        found[str(inside)] = path
    _check_sizes(root, found, bounds)
    return found, walk


@dataclass(slots=True)
class _Walk:
    """One walk down a folder; counts, so that a huge folder is refused early."""

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
        """Yield relative path and place of each file; ``open_``: real folders above, for cycles."""
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
                f"The folder {self.root.name or '/'} has more than {self.limits.files} files: "
                "start in the project's own folder, or list what the job does not need in "
                f"{exclusions.IGNORE_FILE}.",
                code="snapshot-files",
                field="files",
                numbers={"limit": self.limits.files},
            )

    def leave_out(self, inside: PurePosixPath, why: str) -> None:
        left = LeftOut(shown(str(inside)), why)
        self.counts[left.reason] += 1
        if len(self.left_out) < SAID:
            self.left_out.append(left)

    def take_back(self, must: set[str]) -> None:
        """Count nothing of what the caller named as left out."""
        back = {shown(path) for path in must}
        self.counts -= Counter(each.reason for each in self.left_out if each.path in back)
        self.left_out = [each for each in self.left_out if each.path not in back]


def _named(root: Path, name: str) -> tuple[Path, PurePosixPath]:
    """Return place and relative path of a file that the caller named."""
    path = root / name
    real = path.resolve()
    inside = Path(os.path.normpath(path))
    if not real.is_file():
        raise InvalidInput(f"There is no file {name} in {root}.", field="path")
    if not real.is_relative_to(root) or not inside.is_relative_to(root):
        raise InvalidInput(
            f"{name} is not inside {root}: start benchpool in a folder that holds it.",
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
        f"The folder {root.name or '/'} has {data_size(total)} in {len(sizes)} files, the limit is "
        f"{data_size(limits.total_bytes)}: list what the job does not need in "
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
    """Return hash, size and first bytes of a file, as one reading saw them."""
    digest, size, first = hashlib.sha256(), 0, b""
    with path.open("rb") as file:
        while piece := file.read(MIB):
            first = first or piece[:256]
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size, first
