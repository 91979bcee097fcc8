"""Pods that request GPUs past the scheduler, and checks of their rejection."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import httpx

from benchpool_cluster.chart import Manifest
from benchpool_scheduler.contract import kubernetes as names

GPU = {"limits": {"nvidia.com/gpu": "1"}}

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}

GATE = [{"name": names.ADMISSION_GATE}]
count = itertools.count()


def pod(
    spec: Mapping[str, Any] | None = None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **container: Any,
) -> Manifest:
    """Return a pod that meets the restricted standard, with additions to spec and container."""
    main = {"name": "main", "image": "work", "securityContext": RESTRICTED} | container
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{next(count)}",
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"containers": [main], "restartPolicy": "Never"} | dict(spec or {}),
    }


def second(**more: Any) -> list[Manifest]:
    """Return a container beside the main container."""
    return [{"name": "second", "image": "work", "securityContext": RESTRICTED} | more]


def refused(answer: httpx.Response, *rules: str) -> None:
    """Assert that one of the rules rejected the request, with a remedy in the message."""
    assert answer.status_code == 403, answer.text
    message = answer.json()["message"]
    assert any(f"benchpool [{rule}]" in message for rule in rules), message
    assert message.rstrip().endswith("."), message


def affinity(node: str) -> Manifest:
    """Return a node affinity for one node by its name."""
    requirement = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [requirement]}]
        }
    }
