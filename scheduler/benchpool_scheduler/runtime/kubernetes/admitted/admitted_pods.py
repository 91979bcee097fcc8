"""Admit pods created outside benchpool to the GPUs of their job, and annotate waiting pods.

The pods exist already: this module creates none, and never deletes a pod with a closed gate.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from benchpool_scheduler.contract.kubernetes import REASON
from benchpool_scheduler.kube import Connection, KubeFailure, KubeNotFound, kinds
from benchpool_scheduler.runtime import EndedBy, Launch, WorkerEnded, WorkerEvent, WorkerId
from benchpool_scheduler.runtime.admitted import AdmittedWorkload
from benchpool_scheduler.runtime.kubernetes.admitted import workloads
from benchpool_scheduler.runtime.kubernetes.admitted.node_terms import may_be_on
from benchpool_scheduler.runtime.kubernetes.admitted.raw_admitted_pods import AdmittedPod
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptState, WorkerState
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.informers import Informers
from benchpool_scheduler.runtime.kubernetes.job_writer import MetaOnly
from benchpool_scheduler.runtime.kubernetes.work_queue import WorkQueue

log = logging.getLogger(__name__)

MOST_TEXT = 1000


class AdmittedPods:
    """Pods created outside benchpool, as workers of jobs.

    Args:
        publish: Receives the events of workers.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ClusterSettings,
        informers: Informers,
        queue: WorkQueue,
        publish: Callable[[WorkerEvent], None],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._informers = informers
        self._queue = queue
        self._publish = publish
        self._spaces = {one.name: one for one in settings.admitted_namespaces}
        self._bound: dict[str, WorkerId] = {}
        self._reasons: dict[str, str] = {}
        self._made: Mapping[str, tuple[AdmittedPod, ...]] = {}
        self._made_at = 0

    def admitted(self) -> tuple[AdmittedWorkload, ...]:
        """Return the workloads that exist now and have not ended."""
        prefixes = self._settings.gpu_prefixes
        made = (
            workloads.workload_of(job, pods, self._spaces, prefixes)
            for job, pods in self._gathered().items()
        )
        return tuple(one for one in made if one is not None)

    async def admitted_changed(self) -> None:
        """Wait until ``admitted`` may have changed; one consumer."""
        await self._informers.admitted_news.wait()
        self._informers.admitted_news.clear()

    def bind(self, attempt: AttemptState, launch: Launch) -> None:
        """Assign a pod to a worker; the gates open when all workers of its attempt have pods.

        Reports the worker's end if the pods are gone, request other GPUs or do not allow the node.
        """
        worker, node = launch.worker, launch.nodes[launch.worker.worker]
        attempt.admitted = True
        pods = self._gathered().get(worker.job, ())
        if len(pods) != len(launch.nodes):
            self._refuse(attempt, worker, "its pods no longer exist")
            return
        pod = pods[worker.worker]
        asked = workloads.gpus_of(pod, self._settings.gpu_prefixes)[1]
        if asked != len(launch.gpus):
            text = f"{pod.view.name} requests {asked} GPUs, but its job {len(launch.gpus)}"
            self._refuse(attempt, worker, text)
            return
        if not self._allows(pod, node):
            text = (
                f"{pod.view.name} may not run on {node} because of its own nodeSelector or node "
                "affinity"
            )
            self._refuse(attempt, worker, text)
            return
        self._bound[pod.view.uid] = worker
        attempt.uid, attempt.size, attempt.over_since = "admitted", len(launch.nodes), None
        state = WorkerState(worker, node, launch.gpus, launch, pod=self.as_seen(pod.view, False))
        attempt.workers[worker.worker] = state

    def as_seen(self, pod: PodView, gone: bool) -> PodView:
        """Return a pod with the identity of its worker, or unchanged if it has none."""
        worker = self._bound.get(pod.uid)
        if gone:
            self._bound.pop(pod.uid, None)
        if worker is None:
            return pod
        return replace(pod, job=worker.job, attempt=worker.attempt, index=worker.worker)

    def let_wait(self, state: WorkerState) -> bool:
        """Detach a worker that is to stop from its pod; return whether the gate was still closed.

        A waiting pod is never deleted: it continues to wait.
        """
        pod = state.pod
        if pod is None or not (pod.foreign and state.gated) or state.opened or state.opening:
            return False
        self._bound.pop(pod.uid, None)
        return True

    def write_reason(self, job: str, text: str) -> None:
        """Write the reason for waiting to the waiting pods of a job; returns at once."""
        for pod in self._gathered().get(job, ()):
            if not pod.gated or self._reasons.get(pod.view.uid) == text:
                continue
            self._reasons[pod.view.uid] = text
            self._queue.ask(("say", pod.view.uid), partial(self._write, pod.view, text))
        if len(self._reasons) > 2 * len(self._informers.admitted):
            there = {pod.view.uid for pod in self._informers.admitted}
            self._reasons = {uid: text for uid, text in self._reasons.items() if uid in there}

    # ------------------------------------------------------------------ inside

    def _gathered(self) -> Mapping[str, tuple[AdmittedPod, ...]]:
        if self._made_at != self._informers.admitted_changes:
            self._made_at = self._informers.admitted_changes
            listed = (it for it in self._informers.admitted if it.view.namespace in self._spaces)
            self._made = workloads.gather(listed)
        return self._made

    def _allows(self, pod: AdmittedPod, node: str) -> bool:
        known = self._informers.node(node)
        labels = {} if known is None else known.labels
        return known is None or may_be_on(labels, pod.node_selector, pod.view.affinity)

    def _refuse(self, attempt: AttemptState, worker: WorkerId, text: str) -> None:
        if not attempt.workers:
            attempt.over_since = time.monotonic()
        self._publish(WorkerEnded(worker, time.time(), None, EndedBy.NOT_TAKEN, text))

    async def _write(self, pod: PodView, text: str) -> None:
        """Write the reason; nothing depends on its success."""
        change = {"metadata": {"uid": pod.uid, "annotations": {REASON: text[:MOST_TEXT]}}}
        try:
            await self._connection.patch(
                kinds.PODS, pod.name, change, namespace=pod.namespace, as_=MetaOnly
            )
        except KubeNotFound:
            return
        except KubeFailure as refused:
            log.warning(
                "reason of waiting pod %s/%s not written: %s", pod.namespace, pod.name, refused
            )
            self._reasons.pop(pod.uid, None)
