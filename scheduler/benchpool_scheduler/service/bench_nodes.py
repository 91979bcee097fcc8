"""Which machines a server may go to: by the labels that its pod wants, and by its home (R3).

The words are those of Kubernetes: a selector names labels and values, an affinity is a list of
alternatives, each a list of requirements that must all hold.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchpool_scheduler.contract import LeaseRequest, NodeRequirement

NAME = "metadata.name"
"""The key by which a requirement speaks of the machine's name."""


def suits(request: LeaseRequest, name: str, labels: Mapping[str, str]) -> bool:
    """Tell whether a server may go to a machine with these labels.

    >>> wants = [[NodeRequirement("pool", "In", ["gpu"])], [NodeRequirement("big", "Exists")]]
    >>> request = LeaseRequest("susan", "", "1", 1, node_affinity=wants)
    >>> [suits(request, "n", labels) for labels in ({"pool": "gpu"}, {"big": ""}, {"pool": "cpu"})]
    [True, True, False]
    """
    if not request.node_selector.items() <= labels.items():
        return False
    known = {**labels, NAME: name}
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
