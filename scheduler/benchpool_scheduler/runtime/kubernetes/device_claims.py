"""GPUs held by device claims (DRA, ``resource.k8s.io``): pure.

Pods with such a GPU do not request ``nvidia.com/gpu``: only the allocation of their claim shows it.
It counts as foreign use of its node. A MIG slice counts as a whole GPU.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodUse

DRIVER = "gpu.nvidia.com"
SLICE = "-mig-"
"""Separator between the name of a GPU and that of its MIG slice."""


class Result(Struct, frozen=True, rename="camel"):
    """An allocated device; with ``admin_access`` it may be allocated to other claims too."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None


class Devices(Struct, frozen=True):
    """``status.allocation.devices``."""

    results: list[Result] = []


class Allocation(Struct, frozen=True, rename="camel"):
    """``status.allocation``."""

    devices: Devices = Devices()
    node_selector: dict[str, Any] | None = None


class ClaimStatus(Struct, frozen=True):
    """``status`` of a claim."""

    allocation: Allocation | None = None


class RawDeviceClaim(Struct, frozen=True):
    """A ``ResourceClaim`` as the API server sends it."""

    status: ClaimStatus = ClaimStatus()


def keep_claim(claim: RawDeviceClaim) -> PodUse | None:
    """Return the GPUs that a claim uses on its node; None for other devices.

    >>> gpus = [Result(DRIVER, "n0", name) for name in ("gpu-0", "gpu-1-mig-1", "gpu-1-mig-2")]
    >>> keep_claim(RawDeviceClaim(ClaimStatus(Allocation(Devices(gpus)))))
    PodUse(node='n0', requests={'nvidia.com/gpu': 2})
    """
    given = claim.status.allocation
    if given is None:
        return None
    held = [it for it in given.devices.results if it.driver == DRIVER and not it.admin_access]
    if not held:
        return None
    gpus = {(it.pool, it.device.partition(SLICE)[0]) for it in held}
    return PodUse(_node(given.node_selector) or held[0].pool, {GPU_RESOURCE: len(gpus)})


def _node(selector: dict[str, Any] | None) -> str | None:
    """Return the one node that a selector names, or None."""
    for term in (selector or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return None
