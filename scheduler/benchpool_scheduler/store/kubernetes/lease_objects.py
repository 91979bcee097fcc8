"""Build leases as objects: written once, and watched because users may delete them."""

from __future__ import annotations

import msgspec

from benchpool_scheduler.kube import Connection, KubeAlreadyExists, Reflector
from benchpool_scheduler.resources.declaring import ObjectMeta, envelope
from benchpool_scheduler.resources.leases import BUILD_LEASES, BuildLease, BuildLeaseSpec
from benchpool_scheduler.store.kubernetes.encoding import moment
from benchpool_scheduler.store.records import LeaseRecord

LEASES = BUILD_LEASES.kind


def reflector(connection: Connection, namespace: str) -> Reflector[LeaseRecord]:
    """Return a cache of all leases."""
    return Reflector(connection, LEASES, namespace=namespace, as_=BuildLease, keep=_record)


async def write(connection: Connection, namespace: str, lease: LeaseRecord) -> None:
    """Create the object of a lease; an object from an earlier try is no error."""
    body = envelope(LEASES, ObjectMeta(lease.id), spec=_spec(lease))
    try:
        await connection.create(LEASES, body, namespace=namespace, as_=msgspec.Raw)
    except KubeAlreadyExists:
        return


def _spec(it: LeaseRecord) -> BuildLeaseSpec:
    return BuildLeaseSpec(it.user, it.spawn, it.gpus, moment(it.since), it.server)


def _record(lease: BuildLease) -> LeaseRecord:
    it = lease.spec
    return LeaseRecord(
        lease.metadata.name, it.user, it.server, it.spawn, it.gpus, it.since.timestamp()
    )
