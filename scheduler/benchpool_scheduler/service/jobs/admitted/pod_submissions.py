"""External pods as submissions; pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable

from benchpool_scheduler.contract import JobSubmission, PodsEntry
from benchpool_scheduler.contract.hanging import IfHanging
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.runtime.admitted import AdmittedWorkload

TAG = "pods"
MOST_TAG = 63


def of_workload(one: AdmittedWorkload, devices: Iterable[Device]) -> JobSubmission:
    """Return the submission of a workload. Errors: Refused if no node has GPUs of its kind.

    The pool does not retry it, since retries are up to the creator of the pods.

    Args:
        devices: The GPUs of the pool; other kinds than the requested one are left out.
    """
    return JobSubmission(
        PodsEntry(one.namespace, one.owner_kind, one.owner, list(one.pods)),
        name=one.pods[0][:100],
        project=one.project,
        gpus=one.gpus,
        workers=len(one.pods),
        cpus=math.ceil(one.cpus * 1000) / 1000,
        memory_gib=math.ceil(one.memory_gib * 1000) / 1000,
        preemptible=one.preemptible,
        gpu_models=_models(one, devices),
        tags=(TAG, one.owner_kind.lower()[:MOST_TAG], one.namespace),
        retries=0,
        if_hanging=IfHanging.NOTHING,
    )


def _models(one: AdmittedWorkload, devices: Iterable[Device]) -> tuple[str, ...]:
    """Return the models of the requested resource; empty if it covers all GPUs."""
    known = {(device.resource, device.model) for device in devices}
    suiting = sorted(model for resource, model in known if resource == one.resource)
    if not suiting:
        raise Refused(
            f"It asks for {one.resource}, which no node of the pool has; ask for a kind that one "
            "has.",
            code="no-such-gpus",
        )
    return () if len(suiting) == len(known) else tuple(suiting)
