"""Who has uploaded what, and which jobs name it: kept in memory, so that asking costs nothing."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from benchpool_scheduler.contract import SnapshotFile
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.resources.jobs import TrainingJobSpec
from benchpool_scheduler.resources.submissions import (
    bundle_of,
    environment_in,
    environment_of,
    files_of,
)
from benchpool_scheduler.store.kubernetes.fsspec_objects import FsspecObjects
from benchpool_scheduler.store.records import AddObject


class Uploads:
    """The uploads of everybody."""

    def __init__(self, objects: FsspecObjects) -> None:
        self._objects = objects
        self._owners: dict[str, dict[str, float]] = {}
        self._sizes: dict[str, int] = {}
        self._named: Counter[str] = Counter()
        self._unread: list[str] | None = []
        self._environments: dict[tuple[str, str], dict[str, str]] = {}

    async def load(self) -> None:
        """Learn who has what. Errors: Unavailable."""
        self._owners = await asyncio.to_thread(self._objects.load)
        self._sizes = await asyncio.to_thread(self._objects.sizes)

    async def keep(self, upload: AddObject) -> None:
        """Note an upload. Errors: Unavailable."""
        await asyncio.to_thread(self._objects.mark, upload.sha256, upload.user)
        self._owners.setdefault(upload.sha256, {})[upload.user] = upload.at
        self._sizes[upload.sha256] = upload.size

    def stored_bytes(self, user: str) -> int:
        """Return the bytes of what the user has uploaded."""
        return sum(self._sizes.get(it, 0) for it, users in self._owners.items() if user in users)

    def of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return those that the user has uploaded."""
        return frozenset(it for it in hashes if user in self._owners.get(it, ()))

    def unused(self, before: float) -> tuple[str, ...]:
        """Return those that no job names and nobody has uploaded since ``before``."""
        if self._unread is not None:
            return ()
        return tuple(
            sha256
            for sha256, users in self._owners.items()
            if max(users.values(), default=0.0) < before and self._named[sha256] <= 0
        )

    async def forget(self, hashes: Iterable[str]) -> None:
        """Forget who uploaded these. Errors: Unavailable."""
        for sha256 in list(hashes):
            users = self._owners.pop(sha256, {})
            self._sizes.pop(sha256, None)
            await asyncio.to_thread(self._objects.unmark, sha256, users)

    # ------------------------------------------------------------------ what jobs name

    def found(self, spec: TrainingJobSpec) -> None:
        """Note a job that was there at the start."""
        self._named.update(named_by(spec))
        if spec.bundle and self._unread is not None:
            self._unread.append(spec.bundle)

    def name(self, spec: TrainingJobSpec, objects: Iterable[str]) -> None:
        """Note a new job; ``objects`` are all that it needs."""
        self._named.update(dict.fromkeys((*named_by(spec), *objects)).keys())

    def unname(self, spec: TrainingJobSpec) -> None:
        """Note that a job is gone. What its list of many files named is kept until a restart."""
        self._named.subtract(named_by(spec))

    async def read_lists(self) -> None:
        """Learn what the lists of many files name; until then nothing counts as unused."""
        for bundle in self._unread or ():
            with contextlib.suppress(FileNotFoundError, BenchpoolError, msgspec.DecodeError):
                self._named.update(file.sha256 for file in await self.files(bundle))
        self._unread = None

    async def bundle(self, files: list[SnapshotFile]) -> str:
        """Keep a list of many files; return its hash. Errors: Unavailable."""
        return await asyncio.to_thread(self._objects.put_listed, bundle_of(files))

    async def files(self, bundle: str) -> list[SnapshotFile]:
        """Read a list of many files. Errors: FileNotFoundError, Unavailable, msgspec's."""
        return files_of(await asyncio.to_thread(self._objects.read, bundle))

    def files_now(self, bundle: str) -> list[SnapshotFile]:
        """Read a list of many files at once. Errors: as ``files``."""
        return files_of(self._objects.read(bundle))

    # ------------------------------------------------------------------ variables of jobs

    async def keep_environment(self, job: str, variables: Mapping[str, str]) -> str | None:
        """Keep a job's variables where only the scheduler reads; return the hash of the object.

        None where there are none. Errors: Unavailable.
        """
        if not variables:
            return None
        content = environment_of(job, variables, secrets.token_hex(16))
        sha256 = await asyncio.to_thread(self._objects.put_listed, content)
        self._environments[job, sha256] = dict(variables)
        return sha256

    def environment_now(self, job: str, spec: TrainingJobSpec) -> dict[str, str] | None:
        """Return a job's variables, None where they are in its spec.

        Errors: as ``files``; ValueError for those of another job.
        """
        sha256 = spec.environment
        if sha256 is None:
            return None
        found = self._environments.get((job, sha256))
        if found is None:
            found = environment_in(self._objects.read(sha256), job)
            self._environments[job, sha256] = found
        return found

    async def drop_environment(self, job: str, spec: TrainingJobSpec) -> None:
        """Forget the variables of a job that is gone. Errors: Unavailable."""
        if spec.environment:
            self._environments.pop((job, spec.environment), None)
            with contextlib.suppress(FileNotFoundError):
                await asyncio.to_thread(self._objects.delete, spec.environment)


def named_by(spec: TrainingJobSpec) -> tuple[str, ...]:
    """Return the objects that a job names itself."""
    found = dict.fromkeys(file.sha256 for file in spec.files)
    for one in (spec.bundle, spec.notebook and spec.notebook.sha256):
        if one:
            found[one] = None
    return tuple(found)
