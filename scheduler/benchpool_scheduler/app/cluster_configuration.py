"""Configuration of a cluster: watched custom resources, applied all or nothing.

An error is reported in the condition ``InForce`` of the faulty object and of the ``PoolSettings``.
The previous configuration stays in force, even after a restart. A given ``benchpool.yaml`` is
copied into objects once for each version of its text.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from benchpool_scheduler import configuration
from benchpool_scheduler.configuration import Configuration, declared
from benchpool_scheduler.configuration.declared import SOURCE, Declared, Document
from benchpool_scheduler.contract.kubernetes import GROUP
from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.kube import (
    Changed,
    Connection,
    KubeAlreadyExists,
    KubeConflict,
    KubeFailure,
    KubeNotFound,
    KubeUnavailable,
    Listed,
    Reflector,
)
from benchpool_scheduler.resources.declaring import Condition, ObjectMeta, Resource, envelope
from benchpool_scheduler.resources.pools import NODE_POOLS, POOL_SETTINGS, PROJECTS
from benchpool_scheduler.service import Pool

log = logging.getLogger("benchpool_scheduler")

RESOURCES = (POOL_SETTINGS, PROJECTS, NODE_POOLS)
FROM_FILE = f"{GROUP}/from-file"
"""Label of objects made from a ``benchpool.yaml``, which are deleted when it omits them."""
APPLIED = f"{GROUP}/applied"
"""Annotation of ``PoolSettings``: hash of the file that was last copied into objects."""
CALM_S = 0.3
IN_FORCE = "InForce"


class _Status(Struct, frozen=True):
    """Status of an object: its conditions, and numbers for projects and node pools."""

    conditions: tuple[Condition, ...] = ()
    fair_share: int | None = field(name="fairShare", default=None)
    allocated: int | None = None
    waiting: int | None = None
    nodes: int | None = None
    gpus: int | None = None
    free: int | None = None

    @property
    def standing(self) -> Mapping[str, int]:
        """Numbers of the status, named as in the object."""
        fields = msgspec.to_builtins(self)
        return {key: value for key, value in fields.items() if isinstance(value, int)}


class _Seen(Struct, frozen=True):
    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _Status = _Status()

    @property
    def in_force(self) -> Condition | None:
        return next((it for it in self.status.conditions if it.type == IN_FORCE), None)


class ClusterConfiguration:
    """Reader, watcher and writer of the cluster's configuration.

    Args:
        file: Initial ``benchpool.yaml``, which need not exist.
        kept: File for the last valid text, used at a start while the objects are invalid.
        epoch: Epoch of this leader.
    """

    def __init__(self, connection: Connection, file: Path, kept: Path, epoch: int) -> None:
        self._connection = connection
        self._file = file
        self._kept = kept
        self._epoch = epoch
        self._reflectors: dict[str, Reflector[_Seen]] = {
            resource.kind.plural: Reflector(connection, resource.kind, as_=_Seen)
            for resource in RESOURCES
        }
        self._changed = asyncio.Event()
        self._kept_texts = 0

    # ------------------------------------------------------------------ at the start

    async def first(self) -> Configuration:
        """Return the initial configuration. Invalid objects do not raise.

        Errors: KubeFailure, KubeUnavailable, and InvalidInput for an invalid ``file``.
        """
        await self._take_over_file()
        document = _document(await self._read())
        try:
            new = configuration.load(document.text, SOURCE)
        except InvalidInput as error:
            log.error("invalid cluster settings: %s", document.fault(error)[1])
            return self._last_good()
        self._keep_good(document.text)
        return new

    def _last_good(self) -> Configuration:
        try:
            return configuration.load(self._kept.read_text(), SOURCE)
        except (OSError, InvalidInput):
            return Configuration()

    def _keep_good(self, text: str) -> None:
        try:
            self._kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = self._kept.with_suffix(".new")
            temporary.write_text(text)
            temporary.replace(self._kept)
        except OSError as failed:
            log.warning("the settings in force cannot be stored in %s: %s", self._kept, failed)

    async def _take_over_file(self) -> None:
        try:
            text = self._file.read_text()
        except FileNotFoundError:
            return
        mark = hashlib.sha256(text.encode()).hexdigest()
        try:
            settings = await self._connection.get(
                POOL_SETTINGS.kind, declared.SETTINGS_NAME, as_=_Seen
            )
            if (settings.metadata.annotations or {}).get(APPLIED) == mark:
                return
        except KubeNotFound:
            pass
        wanted = declared.objects(text, self._file.name)
        before = await self._objects(labels=f"{FROM_FILE}=true")
        await self._put(wanted, mark)
        await self._delete(before - declared.names(wanted))
        log.info("%s: %d objects applied", self._file, len(wanted))

    # ------------------------------------------------------------------ changes by users

    async def keep(self, text: str) -> None:
        """Write a configuration to the objects and delete all others. Errors: Unavailable."""
        wanted = declared.objects(text)
        try:
            before = await self._objects()
            await self._put(wanted, None)
            await self._delete(before - declared.names(wanted))
        finally:
            # Earlier reads may hold outdated objects.
            self._kept_texts += 1
            self._changed.set()
        self._keep_good(declared.document(wanted).text)

    async def _put(self, wanted: Iterable[Declared], mark: str | None) -> None:
        for one in wanted:
            is_settings = one.resource is POOL_SETTINGS
            annotations = {APPLIED: mark} if mark and is_settings else {}
            labels = {FROM_FILE: "true"} if mark and not is_settings else {}
            await self._put_one(one, annotations, labels)

    async def _put_one(
        self, one: Declared, annotations: Mapping[str, str], labels: Mapping[str, str]
    ) -> None:
        """Create or replace an object. Keep annotations and labels added by users."""
        kind = one.resource.kind
        while True:
            try:
                known = (await self._connection.get(kind, one.name, as_=_Seen)).metadata
            except KubeNotFound:
                about = ObjectMeta(one.name, annotations=annotations, labels=labels)
                with contextlib.suppress(KubeAlreadyExists):
                    await self._connection.create(kind, envelope(kind, about, spec=one.spec))
                    return
                continue
            about = ObjectMeta(
                one.name,
                resource_version=known.resource_version,
                annotations={**(known.annotations or {}), **annotations},
                labels={**(known.labels or {}), **labels},
            )
            with contextlib.suppress(KubeConflict, KubeNotFound):
                await self._connection.replace(kind, one.name, envelope(kind, about, spec=one.spec))
                return

    async def _delete(self, gone: Iterable[tuple[Any, str]]) -> None:
        for kind, name in gone:
            try:
                await self._connection.delete(kind, name)
            except KubeNotFound:
                continue

    async def _objects(self, labels: str | None = None) -> frozenset[tuple[Any, str]]:
        found = [
            (resource.kind, one.metadata.name)
            for resource in RESOURCES
            for one in (await self._connection.list(resource.kind, labels=labels, as_=_Seen)).items
        ]
        return frozenset(found)

    async def _read(self) -> list[tuple[Resource, _Seen]]:
        """Read all objects now. Watched ones may be older than this process's own writes."""
        return [
            (resource, one)
            for resource in RESOURCES
            for one in (await self._connection.list(resource.kind, as_=_Seen)).items
        ]

    # ------------------------------------------------------------------ following

    async def follow(self, pool: Pool) -> None:
        """Apply changes of the objects, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for reflector in self._reflectors.values():
                tasks.create_task(self._listen(reflector))
            while True:
                await self._changed.wait()
                await asyncio.sleep(CALM_S)  # an apply changes several objects
                self._changed.clear()
                if all(reflector.last_contact for reflector in self._reflectors.values()):
                    await self._take_in(pool)

    async def _listen(self, reflector: Reflector[_Seen]) -> None:
        listed = False
        async with aclosing(reflector.changes()) as changes:
            async for change in changes:
                if isinstance(change, Listed):
                    listed = True
                elif isinstance(change, Changed) and _generation(change.item) == _generation(
                    change.before
                ):
                    continue  # only its status changed
                if listed:
                    self._changed.set()

    def objects_of(self, resource: Resource) -> Mapping[str, tuple[str, Mapping[str, int]]]:
        """Return each object's name and reported numbers, by display name."""
        found: dict[str, tuple[str, Mapping[str, int]]] = {}
        for one in self._reflectors[resource.kind.plural].items.values():
            known = _declared(resource, one)
            named = None if known is None else getattr(known.spec, "name", None)
            found[named or one.metadata.name] = one.metadata.name, one.status.standing
        return found

    async def _take_in(self, pool: Pool) -> None:
        kept = self._kept_texts
        try:
            seen = await self._read()
        except (KubeFailure, KubeUnavailable) as failed:
            log.warning("cannot read the cluster settings: %s", failed)
            self._changed.set()
            return
        document = _document(seen)
        fault: tuple[Declared | None, str] | None = None
        try:
            change = await pool.configuration.use(
                document.text, SOURCE, overtaken=lambda: self._kept_texts != kept
            )
        except InvalidInput as error:
            fault = document.fault(error)
            pool.observed.report("configuration", f"The cluster settings are invalid: {fault[1]}")
        except BenchpoolError as error:
            pool.observed.report("configuration", error.message)
            return
        else:
            if change is None:
                return  # the objects are read again
            pool.observed.report("configuration", None)
            self._keep_good(document.text)
            for line in (*change.warnings, *change.changes):
                log.info("configuration: %s", line)
        await self._report(seen, document, fault)

    async def _report(
        self,
        seen: Iterable[tuple[Resource, _Seen]],
        document: Document,
        fault: tuple[Declared | None, str] | None,
    ) -> None:
        for resource, one in seen:
            wanted = _condition(resource, one, fault)
            if wanted is None or _same(one.in_force, wanted):
                continue
            conditions = [it for it in one.status.conditions if it.type != IN_FORCE]
            patch = {"status": {"conditions": [*conditions, wanted], "epoch": self._epoch}}
            try:
                await self._connection.patch(
                    resource.kind, one.metadata.name, patch, subresource="status"
                )
            except KubeNotFound:
                continue
            except (KubeFailure, KubeUnavailable) as failed:
                log.warning("%s %s: %s", resource.kind.kind, one.metadata.name, failed)


def _generation(one: _Seen) -> int:
    return one.metadata.generation or 0


def _document(seen: Iterable[tuple[Resource, _Seen]]) -> Document:
    return declared.document([one for it in seen if (one := _declared(*it)) is not None])


def _declared(resource: Resource, one: _Seen) -> Declared | None:
    try:
        spec = msgspec.json.decode(one.spec, type=resource.spec)
    except msgspec.ValidationError as error:
        # The API server has checked the schema, but a later version may have more fields.
        log.error("%s %s cannot be read: %s", resource.kind.kind, one.metadata.name, error)
        return None
    created = one.metadata.creation_timestamp or ""
    return Declared(resource, one.metadata.name, spec, created)  # type: ignore[arg-type]


def _condition(
    resource: Resource, one: _Seen, fault: tuple[Declared | None, str] | None
) -> Condition | None:
    """Return the condition to report. None for projects and node pools that never had a fault."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    generation = one.metadata.generation or 0
    if fault is None:
        text = "All settings are in force."
        if resource is not POOL_SETTINGS and one.in_force is None:
            return None
        return Condition(IN_FORCE, "True", "Checked", text, now, generation)
    about, sentence = fault
    mine = about is not None and about.key == (resource.kind, one.metadata.name)
    if not mine and resource is not POOL_SETTINGS:
        return None
    return Condition(IN_FORCE, "False", "Wrong", sentence, now, generation)


def _same(before: Condition | None, now: Condition) -> bool:
    return before is not None and (before.status, before.message, before.observed_generation) == (
        now.status,
        now.message,
        now.observed_generation,
    )
