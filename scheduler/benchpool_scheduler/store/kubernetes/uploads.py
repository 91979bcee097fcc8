"""Uploads by user and references by jobs, kept in memory for fast lookups."""

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
    """Uploads of all users."""

    def __init__(self, objects: FsspecObjects) -> None:
        self._objects = objects
        self._owners: dict[str, dict[str, float]] = {}
        self._sizes: dict[str, int] = {}
        self._named: Counter[str] = Counter()
        self._unread: list[str] | None = []
        self._environments: dict[tuple[str, str], dict[str, str]] = {}

    async def load(self) -> None:
        """Load the uploads. Errors: Unavailable."""
        self._owners = await asyncio.to_thread(self._objects.load)
        self._sizes = await asyncio.to_thread(self._objects.sizes)

    async def keep(self, upload: AddObject) -> None:
        """Record an upload. Errors: Unavailable."""
        await asyncio.to_thread(self._objects.mark, upload.sha256, upload.user)
        self._owners.setdefault(upload.sha256, {})[upload.user] = upload.at
        self._sizes[upload.sha256] = upload.size

    def stored_bytes(self, user: str) -> int:
        """Return the size of the user's uploads in bytes."""
        return sum(self._sizes.get(it, 0) for it, users in self._owners.items() if user in users)

    def of(self, user: str, hashes: Iterable[str]) -> frozenset[str]:
        """Return the hashes that the user has uploaded."""
        return frozenset(it for it in hashes if user in self._owners.get(it, ()))

    def unused(self, before: float) -> tuple[str, ...]:
        """Return objects that no job references and no user has uploaded since ``before``."""
        if self._unread is not None:
            return ()
        return tuple(
            sha256
            for sha256, users in self._owners.items()
            if max(users.values(), default=0.0) < before and self._named[sha256] <= 0
        )

    async def forget(self, hashes: Iterable[str]) -> None:
        """Remove the uploads of these objects. Errors: Unavailable."""
        for sha256 in list(hashes):
            users = self._owners.pop(sha256, {})
            self._sizes.pop(sha256, None)
            await asyncio.to_thread(self._objects.unmark, sha256, users)

    # ------------------------------------------------------------------ references by jobs

    def found(self, spec: TrainingJobSpec) -> None:
        """Record a job that was found at the start."""
        self._named.update(named_by(spec))
        if spec.bundle and self._unread is not None:
            self._unread.append(spec.bundle)

    def name(self, spec: TrainingJobSpec, objects: Iterable[str]) -> None:
        """Record a new job; ``objects`` are all objects that it needs."""
        self._named.update(dict.fromkeys((*named_by(spec), *objects)).keys())

    def unname(self, spec: TrainingJobSpec) -> None:
        """Record that a job is gone; objects of its long file list stay until a restart."""
        self._named.subtract(named_by(spec))

    async def read_lists(self) -> None:
        """Read the references of long file lists; until then no object counts as unused."""
        for bundle in self._unread or ():
            with contextlib.suppress(FileNotFoundError, BenchpoolError, msgspec.DecodeError):
                self._named.update(file.sha256 for file in await self.files(bundle))
        self._unread = None

    async def bundle(self, files: list[SnapshotFile]) -> str:
        """Store a long file list and return its hash. Errors: Unavailable."""
        return await asyncio.to_thread(self._objects.put_listed, bundle_of(files))

    async def files(self, bundle: str) -> list[SnapshotFile]:
        """Read a long file list. Errors: FileNotFoundError, Unavailable, msgspec's."""
        return files_of(await asyncio.to_thread(self._objects.read, bundle))

    def files_now(self, bundle: str) -> list[SnapshotFile]:
        """Read a long file list, blocking. Errors: as ``files``."""
        return files_of(self._objects.read(bundle))

    # ------------------------------------------------------------------ variables of jobs

    async def keep_environment(self, job: str, variables: Mapping[str, str]) -> str | None:
        """Store a job's variables where only the scheduler can read; return the object's hash.

        Returns None when there are none. Errors: Unavailable.
        """
        if not variables:
            return None
        content = environment_of(job, variables, secrets.token_hex(16))
        sha256 = await asyncio.to_thread(self._objects.put_listed, content)
        self._environments[job, sha256] = dict(variables)
        return sha256

    def environment_now(self, job: str, spec: TrainingJobSpec) -> dict[str, str] | None:
        """Return a job's variables, or None when they are in its spec.

        Errors: as ``files``; ValueError for the variables of another job.
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
        """Delete the variables of a removed job. Errors: Unavailable."""
        if spec.environment:
            self._environments.pop((job, spec.environment), None)
            with contextlib.suppress(FileNotFoundError):
                await asyncio.to_thread(self._objects.delete, spec.environment)


def named_by(spec: TrainingJobSpec) -> tuple[str, ...]:
    """Return the objects that a job's spec references."""
    found = dict.fromkeys(file.sha256 for file in spec.files)
    for one in (spec.bundle, spec.notebook and spec.notebook.sha256):
        if one:
            found[one] = None
    return tuple(found)
