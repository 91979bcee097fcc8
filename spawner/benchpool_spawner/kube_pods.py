"""Additions to KubeSpawner's pod, and the values read from a planned pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kubernetes_asyncio.client import V1PodSchedulingGate, V1ResourceRequirements, V1Toleration

from benchpool_scheduler.contract.kubernetes import (
    ADMISSION_GATE,
    LEASE,
    ROLE,
    ROLE_NOTEBOOK,
    USER,
)
from benchpool_spawner.kube_nodes import GPU_TOLERATION
from benchpool_spawner.kube_requests import NOTEBOOK, GpuRequest, is_gpu


def draft(spawner: Any) -> dict[str, Any]:
    """Return the GPU and node parts of a spawner's pod, as far as its settings determine them."""
    notebook = {
        "name": NOTEBOOK,
        "resources": {
            "limits": spawner.extra_resource_limits,
            "requests": spawner.extra_resource_guarantees,
        },
    }
    spec: dict[str, Any] = {
        **_placement(spawner),
        # As in KubeSpawner, extra settings replace earlier ones.
        "containers": [
            {**notebook, **(spawner.extra_container_config or {})},
            *_listed(spawner, "extra_containers"),
        ],
        "initContainers": _listed(spawner, "init_containers"),
        **{_SPELT.get(key, key): it for key, it in (spawner.extra_pod_config or {}).items()},
    }
    sent: dict[str, Any] = spawner.api.api_client.sanitize_for_serialization({"spec": spec})
    return sent


_SPELT = {"node_selector": "nodeSelector"}
"""Alternative spellings of relevant keys in ``extra_pod_config``."""


def _placement(spawner: Any) -> dict[str, Any]:
    """Return the node constraints of KubeSpawner's settings, in the form of a pod."""
    found: dict[str, Any] = {
        "nodeSelector": spawner.node_selector,
        "tolerations": _listed(spawner, "tolerations"),
    }
    required = _listed(spawner, "node_affinity_required")
    if required:
        terms = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required}}
        found["affinity"] = {"nodeAffinity": terms}
    return found


def home_claim(spawner: Any) -> str | None:
    """Return the volume claim of the user's home: KubeSpawner's own, else the first, or None."""
    volumes = spawner._expand_all(spawner._sorted_dict_values(spawner.volumes))
    claims = [claim for volume in volumes if (claim := _claim_of(volume))]
    if spawner.pvc_name in claims:
        return str(spawner.pvc_name)
    return claims[0] if claims else None


def jobs_share_home(spawner: Any) -> bool:
    """Return whether jobs mount the home too, so that its files need not be sent with them.

    Several pods must be able to mount it. If each named server has its own home, it is not known
    which one a job would need.
    """
    if not spawner.storage_pvc_ensure or "ReadWriteMany" not in spawner.storage_access_modes:
        return False
    of_server = "server" in spawner.pvc_name_template
    return not (of_server and spawner.user.settings.get("allow_named_servers"))


def lease_to(
    pod: Any, asked: GpuRequest, lease: str | None, user: str, kinds: Sequence[str]
) -> None:
    """Set the pod's GPUs to those of its lease, and add benchpool's gate and the GPU toleration.

    Without a lease it gets no GPUs.

    Args:
        pod: ``V1Pod`` to change.
        kinds: Patterns of the GPU resources.
    """
    notebook = next((c for c in pod.spec.containers if getattr(c, "name", "") == NOTEBOOK), None)
    if notebook is None:
        return  # extra_pod_config replaced the containers; their requests are checked later
    resources = notebook.resources
    if resources is None or isinstance(resources, Mapping):
        # extra_container_config may have set a plain mapping.
        resources = V1ResourceRequirements(**(resources or {}))
    resources.limits = _without_gpus(resources.limits, kinds)
    resources.requests = _without_gpus(resources.requests, kinds)
    notebook.resources = resources
    if lease is None:
        return
    resources.limits[asked.resource] = asked.gpus
    pod.spec.tolerations = [*(pod.spec.tolerations or ()), V1Toleration(**GPU_TOLERATION)]
    gates = [g for g in pod.spec.scheduling_gates or () if _gate(g) != ADMISSION_GATE]
    pod.spec.scheduling_gates = [*gates, V1PodSchedulingGate(name=ADMISSION_GATE)]
    labels = {ROLE: ROLE_NOTEBOOK, LEASE: lease}
    pod.metadata.labels = {**(pod.metadata.labels or {}), **labels}
    pod.metadata.annotations = {**(pod.metadata.annotations or {}), USER: user}


def _without_gpus(amounts: Mapping[str, Any] | None, kinds: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in (amounts or {}).items() if not is_gpu(name, kinds)}


def _gate(gate: Any) -> str:
    return str(gate["name"] if isinstance(gate, Mapping) else gate.name)


def _listed(spawner: Any, name: str) -> list[Any]:
    return list(spawner._sorted_dict_values(getattr(spawner, name)) or ())


def _claim_of(volume: Any) -> str | None:
    if not isinstance(volume, Mapping):
        return None
    claim = volume.get("persistentVolumeClaim") or volume.get("persistent_volume_claim") or {}
    name = claim.get("claimName") or claim.get("claim_name")
    return None if name is None else str(name)
