"""Watch of pods that reports what happens to their workers.

The pod of a worker that is to stop is deleted. A worker whose pod does not begin is given up.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, attempt_name
from benchpool_scheduler.kube import Connection
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerEvent, WorkerId, WorkerStarted
from benchpool_scheduler.runtime.kubernetes import manifests, pod_status
from benchpool_scheduler.runtime.kubernetes.admitted import pod_ends
from benchpool_scheduler.runtime.kubernetes.agent_api import AgentApi
from benchpool_scheduler.runtime.kubernetes.attempt_registry import (
    AttemptRegistry,
    AttemptState,
    WorkerState,
)
from benchpool_scheduler.runtime.kubernetes.cluster_capacity import ClusterCapacity
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView
from benchpool_scheduler.runtime.kubernetes.job_writer import JobWriter
from benchpool_scheduler.runtime.kubernetes.missing_pods import finished, why_missing
from benchpool_scheduler.runtime.kubernetes.work_queue import WorkQueue

log = logging.getLogger(__name__)

TICK_S = 1.0
MISSING_S = 15.0
"""Delay before a missing pod is looked for, in seconds; longer while other pods still appear."""
WHILE_OTHERS_COME = 4
MOST_LOOKS = 5
"""Most attempts to look for in one tick, since the API server keeps no index of events."""
AGENT_SLACK_S = 60.0
"""Time beyond the grace period for an agent to send the remaining data, in seconds."""
QUICK_S = 5
"""Grace period of pods whose command does not run, in seconds."""


class PodMonitor:
    """Watch of the pods of all known attempts.

    Args:
        publish: Receives events. ``take_up``: continues an attempt whose pods have appeared.
        why_not: Returns why no pod may be started on a node, or None.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ClusterSettings,
        registry: AttemptRegistry,
        *,
        job_writer: JobWriter,
        capacity: ClusterCapacity,
        agent_api: AgentApi,
        queue: WorkQueue,
        publish: Callable[[WorkerEvent], None],
        take_up: Callable[[AttemptState], None],
        why_not: Callable[[str], str | None],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._registry = registry
        self._job_writer = job_writer
        self._capacity = capacity
        self._agent_api = agent_api
        self._queue = queue
        self._publish = publish
        self._take_up = take_up
        self._why_not = why_not
        self._watched: set[WorkerId] = set()
        self._came = -math.inf

    def pod_changed(self, pod: PodView, gone: bool) -> None:
        """Process the current or last state of a worker's pod."""
        attempt = self._registry.attempts.get((pod.job, pod.attempt))
        state = None if attempt is None else attempt.workers.get(pod.index)
        ours = pod.namespace == self._settings.namespace
        if attempt is None and ours and ADMISSION_GATE in pod.gates and not gone:
            # Either its attempt ended before this start, and the Job replaced a deleted pod. Or an
            # earlier leader was suspended during a write, and continued after this one began.
            name = attempt_name(pod.job, pod.attempt)
            log.info("%s is not an active attempt; deleting its waiting pod", name)
            self._queue.ask(("unknown", name), partial(self._job_writer.delete_job, name))
            return
        if attempt is None or state is None or state.over or not (ours or pod.foreign):
            return  # in other namespaces only pods that were bound to their workers
        if state.pod is not None and state.pod.uid != pod.uid:
            return  # the gate of a worker's second pod stays closed
        if state.pod is None:
            self._came = time.monotonic()
        state.pod, state.gone = pod, gone
        self._look_at(attempt, state)

    def _look_at(self, attempt: AttemptState, state: WorkerState) -> None:
        pod = state.pod
        if pod is None:
            return
        if not state.start_reported and (pod.running or (pod.ended and pod.ended.started_at)):
            state.start_reported = True
            since = pod.since or (pod.ended.started_at if pod.ended else None)
            if state.expected:
                self._publish(WorkerStarted(state.worker, pod_status.seconds(since) or time.time()))
        status = pod_ends if pod.foreign else pod_status
        end = status.end_of(
            pod, gone=state.gone, asked=state.asked is not None, given_back=state.given_back
        )
        if end is not None:
            self.end(state, end)
            return
        if state.asked is not None and state.kill_at is None and not pod.leaving:
            self.stop(state, pod)
        trouble = status.trouble_of(
            pod,
            self._settings,
            state.node,
            self._why_not(state.node) if pod.unschedulable else None,
        )
        if trouble is None or state.trouble is None or trouble.kind != state.trouble.kind:
            state.since = time.monotonic()
        state.trouble = trouble
        if trouble is not None:
            self._watched.add(state.worker)
        if state.gated and not state.opened and attempt.uid:
            self._take_up(attempt)

    def end(self, state: WorkerState, end: pod_status.WorkerEnd) -> None:
        """Report a worker's end, once."""
        state.over = True
        state.trouble = state.kill_at = None
        if end.by is EndedBy.NOT_TAKEN:
            who = pod_status.witness(state.pod, state.worker.job, state.given_back)
            self._capacity.refuse(state.node, who, end.text or "it refused a pod")
        self._agent_api.leave(state.worker)
        if state.expected:
            at = end.at or time.time()
            event = WorkerEnded(state.worker, at, end.exit_code, end.by, end.text)
            self._publish(replace(event, cause=end.cause, traceback=end.traceback))
        attempt = self._registry.attempts.get((state.worker.job, state.worker.attempt))
        if attempt is not None and attempt.over:
            attempt.over_since = time.monotonic()
        self._capacity.changed()

    # --------------------------------------------------------------------------- stop

    def stop(self, state: WorkerState, pod: PodView) -> None:
        """Delete the pod of a worker that is to stop: at once, or when its agent is overdue."""
        notice, now = state.asked, time.monotonic()
        if notice is None or pod.leaving:
            return
        grace_s = math.ceil(notice.grace_s)
        if not pod.running:
            self._delete(state, pod, 1 if not pod.node else QUICK_S)
        elif self._agent_api.listens(state.worker):
            state.kill_at, state.kill_grace_s = now + grace_s + AGENT_SLACK_S, 1
        else:
            self._delete(state, pod, grace_s + manifests.MARGIN_S)

    def _delete(self, state: WorkerState, pod: PodView, grace_s: int) -> None:
        state.kill_at = None
        self._queue.ask(state.worker, partial(self._job_writer.delete_pod, pod, grace_s))

    def give_back(self, state: WorkerState, trouble: pod_status.Trouble) -> None:
        """Stop waiting for a worker to begin; it has ended when its pod is gone."""
        log.warning("giving up %s: %s", state.worker, trouble.text)
        state.given_back = trouble
        if state.pod is None or (state.pod.foreign and state.gated):
            self.end(state, pod_status.WorkerEnd(None, trouble.by, trouble.text))
            attempt = self._registry.attempts.get((state.worker.job, state.worker.attempt))
            if attempt is not None and attempt.over:
                # Its pods may still appear, and would wait with closed gates forever.
                self._ask(attempt, self.remove)
        else:
            self._delete(state, state.pod, QUICK_S)

    # --------------------------------------------------------------------------- in time

    async def run(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self._look_around(time.monotonic())
            except Exception:
                log.exception("check of workers failed; it is retried")

    def _look_around(self, now: float) -> None:
        for worker in list(self._watched):
            state = self._registry.state(worker)
            if state is None or state.over or (state.trouble is None and state.asked is None):
                self._watched.discard(worker)
            else:
                self._look_in_time(state, now)
        patience_s = MISSING_S * (WHILE_OTHERS_COME if now - self._came < MISSING_S else 1)
        looks = MOST_LOOKS
        for attempt in list(self._registry.attempts.values()):
            if attempt.over_since is not None:
                if now - attempt.over_since > self._settings.keep_ended_s:
                    self._ask(attempt, self.remove)
            elif attempt.admitted:
                continue  # only its owner creates its pods
            elif looks and attempt.uid and now - attempt.looked > patience_s:
                attempt.looked = now
                if attempt.missing():
                    looks -= 1
                    self._ask(attempt, self._look_for)

    def _look_in_time(self, state: WorkerState, now: float) -> None:
        pod = state.pod
        if pod is None:
            return
        if state.kill_at is not None and now >= state.kill_at:
            self._delete(state, pod, state.kill_grace_s)
        trouble = state.trouble
        if trouble is not None and state.given_back is None and now - state.since >= trouble.bear_s:
            self.give_back(state, trouble)

    async def _look_for(self, attempt: AttemptState) -> None:
        """Find out why pods of an attempt are missing, and give up pods that will not appear.

        A worker may have succeeded and its pod may be gone since the pods were listed at the start.
        """
        ended_well = await finished(self._connection, self._settings, attempt)
        for state in attempt.missing():
            if state.worker.worker in ended_well:
                self.end(state, pod_status.WorkerEnd(0, EndedBy.ITSELF))
        if not attempt.missing():
            return
        trouble = await why_missing(self._connection, self._settings, attempt, time.monotonic())
        for state in attempt.missing() if trouble is not None else ():
            if trouble is not None:
                self.give_back(state, trouble)

    async def remove(self, attempt: AttemptState) -> None:
        """Delete an ended attempt's Job with all that it owns."""
        await self._job_writer.delete_job(attempt.name)
        self._registry.attempts.pop((attempt.job, attempt.number), None)

    def watch(self, worker: WorkerId) -> None:
        """Check a worker at every tick."""
        self._watched.add(worker)

    def _ask(
        self, attempt: AttemptState, action: Callable[[AttemptState], Coroutine[None, None, None]]
    ) -> None:
        self._queue.ask((attempt.name, action.__name__), partial(action, attempt))
