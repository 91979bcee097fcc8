"""Foreign pods for tests, in the API server's form, and a runtime that admits them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime.admitted import AdmittedWorkload
from benchpool_scheduler.runtime.kubernetes.admitted.raw_admitted_pods import (
    AdmittedPod,
    RawAdmittedPod,
    keep_admitted,
)
from benchpool_support.scripted import ScriptedRuntime

DONE = "w" * 26
"""Job ID that is easy to distinguish from the IDs of other jobs."""


def pod(
    name: str,
    *,
    owner: tuple[str, str] | None = None,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    gpus: int | None = 1,
    namespace: str = "team-a",
    gated: bool = True,
    **spec: Any,
) -> AdmittedPod:
    """Return a pod object of the Kubernetes API."""
    owners = [] if owner is None else [{"kind": owner[0], "name": owner[1], "controller": True}]
    limits = {} if gpus is None else {"limits": {"nvidia.com/gpu": str(gpus)}}
    body = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{name}",
            "labels": {names.ROLE: names.ROLE_ADMITTED, **(labels or {})},
            "annotations": annotations or {},
            "ownerReferences": owners,
        },
        "spec": {
            "containers": [{"name": "main", "resources": limits}],
            "schedulingGates": [{"name": names.ADMISSION_GATE}] if gated else [],
            **spec,
        },
        "status": {"phase": "Pending"},
    }
    return keep_admitted(msgspec.convert(body, RawAdmittedPod))


def workload(job: str = DONE, **more: Any) -> AdmittedWorkload:
    """Return a pod of user susan that requests one GPU."""
    facts: dict[str, Any] = {
        "namespace": "team-a",
        "owner_kind": "ReplicaSet",
        "owner": "llm-7d9c",
        "pods": ("llm-7d9c-x2x4q",),
        "user": "susan",
        "project": "susan",
        "gpus": 1,
        "cpus": 0.0,
        "memory_gib": 0.0,
        "resource": "nvidia.com/gpu",
        "preemptible": False,
        "waiting": True,
    }
    return AdmittedWorkload(job=job, **(facts | more))


class ScriptedAdmission:
    """Admitted pods that a test sets, and the messages that the service wrote on them."""

    def __init__(self) -> None:
        self.there: dict[str, AdmittedWorkload] = {}
        self.reasons: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._news = asyncio.Condition()

    def put(self, *them: AdmittedWorkload) -> None:
        """Add these pods."""
        self.there.update({one.job: one for one in them})
        self._changed.set()

    def take(self, job: str) -> None:
        """Remove the pods of a job."""
        self.there.pop(job, None)
        self._changed.set()

    async def until_reason(self, job: str, words: str) -> str:
        """Wait until the message on the pods of a job contains these words."""
        async with self._news:
            await self._news.wait_for(lambda: words in self.reasons.get(job, ""))
        return self.reasons[job]

    def admitted(self) -> tuple[AdmittedWorkload, ...]:
        """Return the present pods."""
        return tuple(self.there.values())

    async def admitted_changed(self) -> None:
        """Wait until a test adds or removes pods."""
        await self._changed.wait()
        self._changed.clear()

    def write_reason(self, job: str, text: str) -> None:
        """Record a message for the pods of a job."""
        self.reasons[job] = text
        self._notifying = asyncio.ensure_future(self._notify())

    async def _notify(self) -> None:
        async with self._news:
            self._news.notify_all()


class AdmittingScriptedRuntime(ScriptedRuntime):
    """Scripted runtime that admits foreign pods."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.admits = ScriptedAdmission()
