"""Pods that try to get at GPUs past the scheduler, and what they are told."""

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
    """A pod that the restricted standard lets in, with more in its spec and its container."""
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
    """A container beside the main one."""
    return [{"name": "second", "image": "work", "securityContext": RESTRICTED} | more]


def refused(answer: httpx.Response, *rules: str) -> None:
    """Hold that one of the rules refused, and that it says what to do."""
    assert answer.status_code == 403, answer.text
    message = answer.json()["message"]
    assert any(f"benchpool [{rule}]" in message for rule in rules), message
    assert message.rstrip().endswith("."), message


def affinity(node: str) -> Manifest:
    """The wish for one node by its name."""
    wish = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [wish]}]
        }
    }
