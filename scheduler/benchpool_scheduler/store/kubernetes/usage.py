"""Past use above quota (R7), in the status of each project."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from benchpool_scheduler.kube import Connection, KubeNotFound
from benchpool_scheduler.resources.declaring import ObjectMeta
from benchpool_scheduler.resources.pools import PROJECTS, PastUse, ProjectStatus
from benchpool_scheduler.store.kubernetes import node_records, start_calibration
from benchpool_scheduler.store.kubernetes.cache import WriteSet
from benchpool_scheduler.store.kubernetes.encoding import moment
from benchpool_scheduler.store.records import CalibrationRecord, NodeRecord, UseRecord

KIND = PROJECTS.kind


class _Name(Struct, frozen=True):
    name: str | None = None


class _Project(Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Name = _Name()
    status: ProjectStatus = ProjectStatus()

    @property
    def name(self) -> str:
        return self.spec.name or self.metadata.name


async def remembered(
    connection: Connection,
) -> tuple[tuple[UseRecord, ...], tuple[CalibrationRecord, ...], tuple[NodeRecord, ...]]:
    """Return past use, calibration of start estimates, and node records."""
    return (
        await read(connection),
        await start_calibration.read(connection),
        await node_records.read(connection),
    )


async def save(connection: Connection, write_set: WriteSet, epoch: int) -> None:
    """Save those of the three that a commit changes."""
    if write_set.use is not None:
        await write(connection, write_set.use, epoch)
    if write_set.calibration is not None:
        await start_calibration.write(connection, write_set.calibration)
    if write_set.nodes is not None:
        await node_records.write(connection, write_set.nodes)


async def read(connection: Connection) -> tuple[UseRecord, ...]:
    """Return the saved past use by project and user."""
    listing = await connection.list(KIND, as_=_Project)
    return tuple(
        UseRecord(project.name, it.user or "", it.gpu_s, it.at.timestamp())
        for project in listing.items
        for it in project.status.past_use
    )


async def write(connection: Connection, use: tuple[UseRecord, ...], epoch: int) -> None:
    """Save all past use; use of projects without an object is not saved."""
    of_project: dict[str, list[PastUse]] = {}
    for it in use:
        of_project.setdefault(it.project, []).append(
            PastUse(it.gpu_s, moment(it.at), it.user or None)
        )
    listing = await connection.list(KIND, as_=_Project)
    for project in listing.items:
        wanted = tuple(of_project.get(project.name, ()))
        if wanted == project.status.past_use:
            continue
        status = {"pastUse": wanted, "epoch": epoch}
        try:
            await connection.patch(
                *(KIND, project.metadata.name, {"status": status}),
                subresource="status",
                as_=msgspec.Raw,
            )
        except KubeNotFound:
            continue
