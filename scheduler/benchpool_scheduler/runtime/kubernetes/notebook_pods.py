"""Notebook pods: admitted to the slots of their leases, and checked for nodes that reject them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE
from benchpool_scheduler.kube import KubeFailure
from benchpool_scheduler.runtime.kubernetes.cluster_capacity import ClusterCapacity
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.job_writer import JobWriter
from benchpool_scheduler.runtime.kubernetes.pod_status import TEXT_LIMIT
from benchpool_scheduler.runtime.kubernetes.work_queue import WorkQueue

log = logging.getLogger(__name__)


class NotebookPods:
    """The existing notebook pods, by lease.

    Args:
        why_not: Returns why no pod may be started on a node, or None.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        job_writer: JobWriter,
        capacity: ClusterCapacity,
        queue: WorkQueue,
        why_not: Callable[[str], str | None],
    ) -> None:
        self._settings = settings
        self._job_writer = job_writer
        self._capacity = capacity
        self._queue = queue
        self._why_not = why_not
        self._pods: dict[str, PodView] = {}

    def hold(self, lease: str, slots: tuple[str, ...]) -> None:
        """Admit the pod of a lease to these slots, now or when it appears."""
        self._capacity.hold(lease, slots)
        pod = self._pods.get(lease)
        if pod is not None:
            self._look_at(pod)

    def pod_changed(self, pod: PodView, gone: bool) -> None:
        """Process the current or last state of a notebook's pod."""
        if gone:
            self._pods.pop(pod.lease, None)
            return
        self._pods[pod.lease] = pod
        self._look_at(pod)

    def _look_at(self, pod: PodView) -> None:
        held = self._capacity.leased.get(pod.lease)
        if held and ADMISSION_GATE in pod.gates and not pod.leaving:
            self._queue.ask(("lease", pod.uid), partial(self._open, pod, held))
        if pod.unschedulable is not None and held:
            self._queue.ask(("room", pod.uid), partial(self._wait, pod, held))

    async def _wait(self, pod: PodView, held: tuple[str, ...]) -> None:
        """Avoid a node that cannot run the notebook for which it was chosen.

        A start of a server tries only one node, so the next start tries another one.
        """
        await asyncio.sleep(self._settings.unschedulable_s)
        now = self._pods.get(pod.lease)
        if now is None or now.uid != pod.uid or now.unschedulable is None or now.node:
            return
        node = held[0].split("/")[0]
        why = self._why_not(node) or now.unschedulable
        self._capacity.leave_alone(
            node, f"{node} cannot run the notebook {now.name}: {why}"[:TEXT_LIMIT]
        )

    async def _open(self, pod: PodView, held: tuple[str, ...]) -> None:
        node = held[0].split("/")[0]
        try:
            await self._job_writer.open(pod, node, held)
        except KubeFailure as refused:
            log.error("gate of notebook pod %s not opened: %s", pod.name, refused)
