"""To which nodes a pod may go, by what its spec says: told with the reservation (pure).

What the scheduler does not know it cannot keep to: a lease on a node that the pod may not go to is
a server that never starts. So the finished pod must ask for what was told.
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
"""The spec of a pod, as the API server reads it."""

GPU_TOLERATION = {"key": GPU_RESOURCE, "operator": "Exists"}
"""What GPU nodes are tainted with by custom; who has a lease may go there, as jobs may."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Nodes:
    """What a pod says of nodes: labels, alternatives of requirements, taints that it bears."""

    selector: Mapping[str, str]
    affinity: tuple[tuple[NodeRequirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def as_request(self) -> dict[str, Any]:
        """Return the fields of a lease's request."""
        return {
            "node_selector": dict(self.selector),
            "node_affinity": [list(term) for term in self.affinity],
            "tolerations": list(self.tolerations),
        }


def nodes_of(spec: Spec, *, leased: bool) -> Nodes:
    """Return to which nodes a pod may go.

    Args:
        leased: It has GPUs, so that it bears the taint of GPU nodes.

    Raises:
        InvalidInput: It says something that Kubernetes does not know.

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
            f"What the pod says of nodes cannot be read ({wrong}): an administrator has to correct "
            "node_selector, node_affinity_required, tolerations or extra_pod_config.",
            code="gpu-requests",
        ) from wrong


def check_nodes(spec: Spec, told: Nodes) -> None:
    """Refuse a pod that may go to fewer nodes than the scheduler was told.

    Raises:
        InvalidInput: It wants other labels, or bears less.
    """
    has = nodes_of(spec, leased=True)
    if (dict(has.selector), has.affinity) == (dict(told.selector), told.affinity) and set(
        told.tolerations
    ) <= set(has.tolerations):
        return
    raise InvalidInput(
        "The pod may go to other nodes than was said when its GPUs were reserved: something has "
        "changed its nodeSelector, affinity or tolerations (modify_pod_hook?). Set them by "
        "node_selector, node_affinity_required, tolerations or extra_pod_config instead.",
        code="gpu-requests",
    )


def _term(term: Mapping[str, Any]) -> tuple[NodeRequirement, ...]:
    # KubeSpawner takes a term in either spelling.
    parts = ("matchExpressions", "match_expressions", "matchFields", "match_fields")
    wanted = [one for part in parts for one in term.get(part) or ()]
    return tuple(msgspec.convert(wanted, list[NodeRequirement]))


def _toleration(one: Mapping[str, Any]) -> Toleration:
    said = {key: one.get(key) or "" for key in ("key", "value", "effect")}
    return msgspec.convert({**said, "operator": one.get("operator") or "Equal"}, Toleration)
