"""Nodes on which a server may run, by labels and tolerated taints (R3).

The terms are those of Kubernetes: a selector names labels and values, an affinity is a list of
alternatives, each a list of requirements that must all hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from benchpool_scheduler.contract import LeaseRequest, NodeRequirement, Toleration
from benchpool_scheduler.runtime import NodeFacts

NAME = "metadata.name"
"""Key with which a requirement refers to the node's name."""

Taint = tuple[str, str, str]


def suits(request: LeaseRequest, node: NodeFacts) -> bool:
    """Return whether a server may run on a node.

    >>> wants = [[NodeRequirement("pool", "In", ["gpu"])], [NodeRequirement("big", "Exists")]]
    >>> request = LeaseRequest("susan", "", "1", 1, node_affinity=wants)
    >>> [suits(request, NodeFacts("n", has)) for has in ({"pool": "gpu"}, {"big": ""}, {})]
    [True, True, False]
    """
    return _has_labels(request, node) and not _unborne(request, node)


def why_none(request: LeaseRequest, nodes: Iterable[NodeFacts]) -> str:
    """Return why a server can run on none of these nodes, as part of a sentence.

    >>> request = LeaseRequest("susan", "", "1", 1, node_selector={"disk": "fast"})
    >>> why_none(request, [NodeFacts("n", {"disk": "slow"})])
    'none of them has the label disk=fast'
    """
    labelled = [node for node in nodes if _has_labels(request, node)]
    if labelled:
        taints = {taint for node in labelled for taint in _unborne(request, node)}
        words = sorted(f"{key}={value}" if value else key for key, value, _ in taints)
        return f"it does not tolerate the taints of its machines ({', '.join(words)})"
    if not request.node_selector:
        return "none of them meets its required node affinity"
    wanted = [f"{key}={value}" for key, value in sorted(request.node_selector.items())]
    more = " and meets its required node affinity" if request.node_affinity else ""
    labels = "label" if len(wanted) == 1 else "labels"
    return f"none of them has the {labels} {', '.join(wanted)}{more}"


def _has_labels(request: LeaseRequest, node: NodeFacts) -> bool:
    if not request.node_selector.items() <= node.labels.items():
        return False
    known = {**node.labels, NAME: node.name}
    terms = request.node_affinity
    return not terms or any(all(_holds(one, known) for one in term) for term in terms if term)


def _holds(wanted: NodeRequirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(wanted.key)
    match wanted.operator:
        case "In":
            return value in wanted.values
        case "NotIn":
            return value not in wanted.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(wanted, value)


def _compares(wanted: NodeRequirement, value: str | None) -> bool:
    try:
        has, limit = int(value or ""), int(wanted.values[0])
    except (ValueError, IndexError):
        return False
    return has > limit if wanted.operator == "Gt" else has < limit


def _unborne(request: LeaseRequest, node: NodeFacts) -> list[Taint]:
    if request.tolerations is None:
        return []
    return [
        taint for taint in node.taints if not any(_bears(one, taint) for one in request.tolerations)
    ]


def _bears(toleration: Toleration, taint: Taint) -> bool:
    key, value, effect = taint
    if toleration.effect not in ("", effect) or toleration.key not in ("", key):
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == value
