"""GPUs that others hold by device claims (DRA, ``resource.k8s.io``): pure.

Pods that hold a GPU so ask for no ``nvidia.com/gpu``: only the allocation of their claim tells of
it. It counts as foreign use of its node. A slice of a GPU counts as the whole of it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodUse

DRIVER = "gpu.nvidia.com"
SLICE = "-mig-"
"""What parts the name of a GPU from that of a slice of it."""


class Result(Struct, frozen=True, rename="camel"):
    """A device that was allocated; with ``admin_access`` others may have it too."""

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
    """Return what a claim takes of its node; None when that is no GPU.

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
    """Return the one node that a selector is about; the driver's pools are named after nodes."""
    for term in (selector or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return None
