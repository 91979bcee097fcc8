"""Nodes that a pod may go to, as reported with the reservation (pure).

The scheduler can respect only the constraints it knows: a lease on another node is a server that
never starts. So the finished pod must match what was reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from benchpool_scheduler.contract import NodeRequirement, Toleration
from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE
from benchpool_scheduler.errors import InvalidInput

Spec = Mapping[str, Any]
"""Spec of a pod, as the API server reads it."""

GPU_TOLERATION = {"key": GPU_RESOURCE, "operator": "Exists"}
"""Toleration of the usual taint of GPU nodes. Pods with a lease may go there, as jobs may."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Nodes:
    """Node constraints of a pod: labels, alternative requirements, and tolerated taints."""

    selector: Mapping[str, str]
    affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def as_request(self) -> dict[str, Any]:
        """Return the fields of a lease request."""
        return {
            "node_selector": dict(self.selector),
            "node_affinity": [list(term) for term in self.affinity],
            "tolerations": list(self.tolerations),
        }


def nodes_of(spec: Spec, *, leased: bool) -> Nodes:
    """Return the node constraints of a pod.

    Args:
        leased: Whether it has GPUs, and so tolerates the taint of GPU nodes.

    Raises:
        InvalidInput: The spec has a value that Kubernetes does not know.

    >>> nodes_of({"nodeSelector": {"pool": "gpu"}}, leased=False)
    Nodes(selector={'pool': 'gpu'}, affinity=(), tolerations=())
    """
    try:
        affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
        terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
        borne = [*(spec.get("tolerations") or ()), *([GPU_TOLERATION] if leased else [])]
        return Nodes(
            msgspec.convert(spec.get("nodeSelector") or {}, dict[str, str]),
            tuple(_term(term) for term in terms),
            tuple(dict.fromkeys(_toleration(one) for one in borne)),
        )
    except (msgspec.ValidationError, AttributeError, TypeError) as wrong:
        raise InvalidInput(
            f"The pod's node settings cannot be read ({wrong}). An administrator must correct "
            "node_selector, node_affinity_required, tolerations or extra_pod_config.",
            code="gpu-requests",
        ) from wrong


def check_nodes(spec: Spec, reported: Nodes) -> None:
    """Refuse a pod whose node constraints differ from those reported to the scheduler.

    Raises:
        InvalidInput: It requires other labels, or tolerates fewer taints.
    """
    has = nodes_of(spec, leased=True)
    if (dict(has.selector), has.affinity) == (dict(reported.selector), reported.affinity) and set(
        reported.tolerations
    ) <= set(has.tolerations):
        return
    raise InvalidInput(
        "The pod's nodeSelector, affinity or tolerations were changed after its GPUs were "
        "reserved (modify_pod_hook?). Set them by node_selector, node_affinity_required, "
        "tolerations or extra_pod_config instead.",
        code="gpu-requests",
    )


def _term(term: Mapping[str, Any]) -> tuple[NodeRequirement, ...]:
    # KubeSpawner accepts both spellings in a term.
    parts = ("matchExpressions", "match_expressions", "matchFields", "match_fields")
    wanted = [one for part in parts for one in term.get(part) or ()]
    return tuple(msgspec.convert(wanted, list[NodeRequirement]))


def _toleration(one: Mapping[str, Any]) -> Toleration:
    fields = {key: one.get(key) or "" for key in ("key", "value", "effect")}
    return msgspec.convert({**fields, "operator": one.get("operator") or "Equal"}, Toleration)
