"""Build leases as objects."""

from __future__ import annotations

import msgspec

from benchpool_scheduler.kube import AlreadyExists, Connection
from benchpool_scheduler.resources.declaring import ObjectMeta, envelope
from benchpool_scheduler.resources.leases import BUILD_LEASES, BuildLease, BuildLeaseSpec
from benchpool_scheduler.store.kubernetes.translation import moment
from benchpool_scheduler.store.records import LeaseRecord

LEASES = BUILD_LEASES.kind


async def read(connection: Connection, namespace: str) -> tuple[LeaseRecord, ...]:
    """Return all leases, oldest first."""
    listing = await connection.list(LEASES, namespace=namespace, as_=BuildLease)
    found = (_record(it.metadata.name, it.spec) for it in listing.items)
    return tuple(sorted(found, key=lambda it: (it.since, it.id)))


async def write(connection: Connection, namespace: str, lease: LeaseRecord) -> None:
    """Make the object of a lease; one that an earlier try has made is as good."""
    body = envelope(LEASES, ObjectMeta(lease.id), spec=_spec(lease))
    try:
        await connection.create(LEASES, body, namespace=namespace, as_=msgspec.Raw)
    except AlreadyExists:
        return


def _spec(it: LeaseRecord) -> BuildLeaseSpec:
    return BuildLeaseSpec(it.user, it.spawn, it.gpus, moment(it.since), it.server)


def _record(name: str, it: BuildLeaseSpec) -> LeaseRecord:
    return LeaseRecord(name, it.user, it.server, it.spawn, it.gpus, it.since.timestamp())
