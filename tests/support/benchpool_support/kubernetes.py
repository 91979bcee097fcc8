"""Shared parts of tests on a real API server: our definitions, and namespaces per test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from benchpool_scheduler.kube import Connection, Kind
from benchpool_scheduler.kube.kinds import DEFINITIONS, NAMESPACES
from benchpool_scheduler.resources.definitions import RESOURCES, definition
from benchpool_scheduler.resources.policies import accepted_stays
from benchpool_support.waiting import until_async

T = TypeVar("T")
ADMISSION = "admissionregistration.k8s.io"
POLICIES = Kind(
    ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
BINDINGS = Kind(
    ADMISSION,
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
    namespaced=False,
)


async def define(connection: Connection) -> None:
    """Apply our custom resource definitions to the API server and wait until they are served."""
    for resource in RESOURCES:
        wanted = definition(resource)
        await connection.apply(DEFINITIONS, wanted["metadata"]["name"], wanted, manager="tests")
    await _police(connection)
    for resource in RESOURCES:
        await _established(connection, f"{resource.kind.plural}.{resource.kind.group}")


async def _police(connection: Connection) -> None:
    """Protect accepted jobs against changes, as the chart does."""
    about = {"apiVersion": POLICIES.api_version, "metadata": {"name": "accepted"}}
    policy = about | {"kind": POLICIES.kind, "spec": accepted_stays()}
    await connection.apply(POLICIES, "accepted", policy, manager="tests")
    spec = {"policyName": "accepted", "validationActions": ["Deny"]}
    binding = about | {"kind": BINDINGS.kind, "spec": spec}
    await connection.apply(BINDINGS, "accepted", binding, manager="tests")


async def _established(connection: Connection, name: str) -> None:
    async def look() -> bool:
        known = await connection.get(DEFINITIONS, name)
        conditions = known.get("status", {}).get("conditions") or []  # null at first
        return any(it["type"] == "Established" and it["status"] == "True" for it in conditions)

    await until_async(look, f"{name} is established")


@asynccontextmanager
async def namespace(connection: Connection, prefix: str = "test") -> AsyncIterator[str]:
    """Yield a namespace for this test alone; it is deleted afterwards."""
    name = f"{prefix}-{secrets.token_hex(4)}"
    await connection.create(NAMESPACES, {"metadata": {"name": name}})
    try:
        yield name
    finally:
        await connection.delete(NAMESPACES, name)


async def empty(connection: Connection, *kinds: Kind) -> None:
    """Delete all objects of cluster-wide kinds."""
    for kind in kinds:
        listing: Any = await connection.list(kind)
        for item in listing.items:
            await connection.delete(kind, item["metadata"]["name"])
