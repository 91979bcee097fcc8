"""Node constraints in a pod's own specification: pure.

Only constraints on node labels are checked, before the gate opens. kube-scheduler checks the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def may_be_on(
    labels: Mapping[str, str],
    node_selector: Mapping[str, str],
    affinity: Mapping[str, Any] | None,
) -> bool:
    """Return whether nodeSelector and required node affinity allow a node with these labels.

    >>> may_be_on({"zone": "a"}, {"zone": "a"}, None), may_be_on({"zone": "a"}, {"zone": "b"}, None)
    (True, False)
    >>> term = {"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}
    >>> wanted = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    >>> may_be_on({"zone": "a"}, {}, wanted), may_be_on({}, {}, wanted)
    (False, True)
    """
    if any(labels.get(key) != value for key, value in node_selector.items()):
        return False
    required = ((affinity or {}).get("nodeAffinity") or {}).get(REQUIRED) or {}
    terms = required.get("nodeSelectorTerms") or []
    return not terms or any(_meets(labels, term) for term in terms)


def _meets(labels: Mapping[str, str], term: Mapping[str, Any]) -> bool:
    return all(_holds(labels, one) for one in term.get("matchExpressions") or ())


def _holds(labels: Mapping[str, str], wanted: Mapping[str, Any]) -> bool:
    has, values = labels.get(wanted.get("key", "")), wanted.get("values") or []
    match wanted.get("operator"):
        case "In":
            return has in values
        case "NotIn":
            return has not in values
        case "Exists":
            return has is not None
        case "DoesNotExist":
            return has is None
    return True  # Gt, Lt and later operators: kube-scheduler checks them
