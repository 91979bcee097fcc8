"""Workers as pods of a cluster: the Kubernetes implementation of the runtime port.

The state is read from the API server rather than kept in memory. Jobs list the attempts and the
placements of their workers; pods show the progress of each worker. This module decides nothing.
Actions are repeated until they succeed; a call of the port never waits for the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path

from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.kube import Connection, KubeFailure
from benchpool_scheduler.runtime import (
    Device,
    EndedBy,
    Launch,
    NodeFacts,
    Notice,
    Part,
    Pinned,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
)
from benchpool_scheduler.runtime.kubernetes import manifests
from benchpool_scheduler.runtime.kubernetes.admitted.admitted_pods import AdmittedPods
from benchpool_scheduler.runtime.kubernetes.adoption import adopt
from benchpool_scheduler.runtime.kubernetes.agent_api import AgentApi
from benchpool_scheduler.runtime.kubernetes.agent_tokens import AgentTokens
from benchpool_scheduler.runtime.kubernetes.attempt_registry import (
    AttemptRegistry,
    AttemptState,
    WorkerState,
)
from benchpool_scheduler.runtime.kubernetes.cluster_capacity import ClusterCapacity
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView, PodView
from benchpool_scheduler.runtime.kubernetes.gpu_slots import why_not
from benchpool_scheduler.runtime.kubernetes.informers import Informers
from benchpool_scheduler.runtime.kubernetes.job_writer import JobWriter
from benchpool_scheduler.runtime.kubernetes.namespace_limits import no_room
from benchpool_scheduler.runtime.kubernetes.notebook_pods import NotebookPods
from benchpool_scheduler.runtime.kubernetes.pod_monitor import PodMonitor
from benchpool_scheduler.runtime.kubernetes.pod_status import TEXT_LIMIT, Trouble, WorkerEnd
from benchpool_scheduler.runtime.kubernetes.work_queue import WorkQueue
from benchpool_scheduler.runtime.worker_logs import WorkerLogs
from benchpool_scheduler.worker.folders import Folders

log = logging.getLogger(__name__)


class KubernetesRuntime:
    """Runs workers as pods; see the port for the contract of each method.

    Args:
        connection: To the API server; closed by the owner.
        state: The state folder, for logs and data from agents.
        secret: At least 32 bytes, the same in every replica; the key of the agents' tokens.
        epoch: Returns the current epoch of leadership.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ClusterSettings,
        *,
        state: Path,
        secret: bytes,
        epoch: Callable[[], int] = lambda: 0,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._folders = Folders(state.absolute())
        self.tokens = AgentTokens(secret)
        self.job_writer = JobWriter(connection, settings, self.tokens, epoch)
        self._registry = AttemptRegistry()
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self.agent_api = AgentApi(
            self._folders,
            self._events.put_nowait,
            ended=self._registry.ended,
            log_bytes=settings.log_bytes,
        )
        self.stacks, self.shell = self.agent_api.stacks, self.agent_api.shell
        self.host_of, self.listen = self._registry.host_of, settings.listen
        self._capacity = ClusterCapacity(settings, self._registry)
        self._informers = Informers(
            connection, self._pod_changed, self._capacity.changed, settings.namespace
        )
        self._logs = WorkerLogs(self._folders, self._log_ended, self.agent_api.wait_for_growth)
        self._queue = WorkQueue()
        self._monitor = PodMonitor(
            connection,
            settings,
            self._registry,
            job_writer=self.job_writer,
            capacity=self._capacity,
            agent_api=self.agent_api,
            queue=self._queue,
            publish=self._events.put_nowait,
            take_up=lambda attempt: self._ask(attempt, self._take_up),
            why_not=self._why_not,
        )
        self._notebooks = NotebookPods(
            settings, self.job_writer, self._capacity, self._queue, self._why_not
        )
        self.admits = AdmittedPods(
            connection, settings, self._informers, self._queue, self._events.put_nowait
        )  # fmt: skip
        logs = self._logs
        self.read_log, self.find_log_offset, self.wait_log = logs.read, logs.offset_at, logs.wait
        self._open = False
        self._ticker: asyncio.Task[None] | None = None

    @property
    def writes(self) -> int:
        """Number of writes that the API server has accepted from this process."""
        return self._connection.writes

    @property
    def namespace(self) -> str:
        """Namespace of workers and notebooks."""
        return self._settings.namespace

    @property
    def seen_nodes(self) -> Iterable[NodeView]:
        """Nodes as last seen."""
        return self._informers.nodes

    @property
    def seen_pods(self) -> Iterable[PodView]:
        """Pods of benchpool as last seen."""
        return self._informers.pods

    # --------------------------------------------------------------------------- life

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Find the workers of an earlier service, and stop the unexpected ones."""
        await self._informers.start()
        pods = list(self._informers.pods)
        found = await adopt(self._connection, self._settings, self._registry, expected, pods)
        self._open = True
        self._capacity.opened()
        for pod in list(self._informers.pods):
            self._pod_changed(pod, False)
        for worker in found.finished:
            self._events.put_nowait(WorkerEnded(worker, time.time(), 0, EndedBy.ITSELF))
        for worker in found.lost:
            text = "the scheduler was restarted before its pods were created"
            self._events.put_nowait(WorkerEnded(worker, time.time(), None, EndedBy.LOST, text))
        for name in found.unexpected:
            await self.job_writer.delete_job(name)
        for attempt in self._registry.attempts.values():
            self._ask(attempt, self._take_up_again)
        self._ticker = asyncio.create_task(self._monitor.run())

    async def close(self) -> None:
        """Release all resources; workers continue to run."""
        if self._ticker is not None:
            self._ticker.cancel()
        await self._queue.close()
        await self._informers.close()
        self._events.put_nowait(None)

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield the events of all workers, in order, until ``close``; one consumer."""
        while (event := await self._events.get()) is not None:
            yield event

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now; the same tuple object while nothing has changed."""
        await self._informers.start()
        return self._capacity.devices(self._informers)

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the nodes as they are now; the same tuple object while nothing has changed."""
        await self._informers.start()
        return self._capacity.nodes(self._informers)

    async def machines_changed(self) -> None:
        """Wait until a node, or its use by foreign pods, has changed; one consumer."""
        await self._informers.news.wait()
        self._informers.news.clear()

    def denied_devices(self, gpus: Sequence[str]) -> Sequence[tuple[int, int]]:
        """Return nothing: a pod sees only the devices that the kubelet gives it."""
        return ()

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return the nodes that can use a claim: ``NAMESPACE/NAME``, or a name beside the jobs."""
        namespace, _, name = claim.rpartition("/")
        return self._informers.nodes_for_claim(namespace or self._settings.namespace, name)

    def results(self, job: str, worker: int) -> Path | None:
        """Return the packed results that a worker has sent, or None."""
        packed = self.agent_api.carried(job, "results", worker)
        return packed if packed.is_file() else None

    def home_of(self, user: str) -> str | None:
        """Return the claim of a user's home, if jobs may mount it along with the user's server."""
        return self._informers.home_of(self._settings.namespace, user)

    def pinned(self, user: str, image: str) -> Pinned:
        """Return an image with the digest that a notebook of the user runs."""
        return self._informers.pinned(user, image)

    # --------------------------------------------------------------------------- start

    async def start(self, launch: Launch) -> None:
        """Start a worker; the outcome is reported as an event. Repeating the call has no effect.

        A gang is created when all its workers were launched. Raises InvalidInput.
        """
        worker, now = launch.worker, time.monotonic()
        if launch.gpus:
            try:
                manifests.resource_of(launch.gpus)
            except ValueError as mixed:
                raise InvalidInput(f"It cannot be started: {mixed}.", field="gpus") from mixed
        attempt = self._registry.attempt(worker.job, worker.attempt, now)
        attempt.wanted = max(attempt.wanted, len(launch.nodes))
        if worker.worker in attempt.workers:
            return
        node = launch.nodes[worker.worker]
        if launch.admitted:
            self.admits.bind(attempt, launch)
        else:
            attempt.workers[worker.worker] = WorkerState(worker, node, launch.gpus, launch)
        self._capacity.changed()
        if attempt.whole:
            self._ask(attempt, self._take_up)

    async def _take_up(self, attempt: AttemptState) -> None:
        """Create the missing objects of an attempt, and open its gates when it is complete."""
        if attempt.in_doubt:
            return  # continued when all its objects are known to exist
        lacking = not attempt.uid or attempt.size < attempt.wanted
        if lacking and not attempt.admitted and not await self._make(attempt):
            return
        opening = attempt.to_open()
        opened = await asyncio.gather(*(self._open_gate(state) for state in opening))
        for state, done in zip(opening, opened, strict=True):
            state.opened = state.opened or done

    async def _take_up_again(self, attempt: AttemptState) -> None:
        """Continue an attempt of an earlier service; give it up if it is incomplete.

        The Secret is created before any gate is opened. Without it, no worker with a closed gate or
        without a pod has begun.
        """
        if attempt.unbegun and not await self._was_made(attempt):
            text = "the scheduler was restarted before its pods could start"
            for state in attempt.unbegun:
                self._monitor.give_back(state, Trouble("half", text, 0.0, EndedBy.LOST))
            return
        attempt.in_doubt = False
        await self._take_up(attempt)

    async def _was_made(self, attempt: AttemptState) -> bool:
        try:
            return await self.job_writer.has_secret(attempt.name)
        except KubeFailure as refused:
            log.warning("it is unknown whether %s was created: %s", attempt.name, refused)
            return False

    async def _make(self, attempt: AttemptState) -> bool:
        """Create or enlarge the Job; return False if nothing was created."""
        if all(state.asked is not None for state in attempt.live) and not attempt.uid:
            for state in list(attempt.live):
                self._monitor.end(state, WorkerEnd(None, EndedBy.NOTICE, "it was stopped before"))
            if attempt.begun:
                await self.job_writer.delete_job(attempt.name)
            return False
        # The newest launch covers all workers.
        known = [state.launch for state in attempt.live if state.launch is not None]
        launch = max(known, key=lambda one: len(one.nodes), default=None)
        if launch is None or not attempt.whole:
            return False
        try:
            if attempt.size:
                await self.job_writer.grow(attempt, launch)
            else:
                await self.job_writer.make(attempt, launch)
        except (KubeFailure, InvalidInput) as refused:
            await self._not_made(attempt, refused)
            return False
        attempt.looked = time.monotonic()
        return True

    async def _not_made(self, attempt: AttemptState, refused: Exception) -> None:
        """Give up workers without objects that the API server rejected; others keep running."""
        full = no_room(str(refused), self._settings.namespace)
        text = (full or f"the cluster rejects it: {refused}")[:TEXT_LIMIT]
        by = EndedBy.NO_ROOM if full else EndedBy.COULD_NOT_START
        log.warning("attempt %s not created: %s", attempt.name, refused)
        for state in list(attempt.live):
            if state.pod is None:
                self._monitor.end(state, WorkerEnd(None, by, text))
            elif not attempt.size:  # its Job exists, and its pods wait for missing objects
                self._monitor.give_back(state, Trouble("not-made", text, 0.0, by))
        if attempt.begun and not attempt.size:
            await self.job_writer.delete_job(attempt.name)

    async def _open_gate(self, state: WorkerState) -> bool:
        pod = state.pod
        if pod is None or not state.gated:
            return True
        state.opening = True
        try:
            return await self.job_writer.open(pod, state.node, state.slots)
        except KubeFailure as refused:
            text = f"the cluster does not let it start: {refused}"[:TEXT_LIMIT]
            self._monitor.give_back(state, Trouble("gate", text, 0.0, EndedBy.LOST))
            return False
        finally:
            state.opening = False

    # --------------------------------------------------------------------------- benches

    async def hold(self, lease: str, slots: tuple[str, ...]) -> None:
        """Admit the notebook pod of a lease to these slots, now or when it appears.

        Call it again for every lease in force after a start; repeating the call has no effect.
        """
        self._notebooks.hold(lease, slots)

    def release(self, lease: str) -> None:
        """Forget a lease; its slots count as foreign use until its pod is gone."""
        self._capacity.release(lease)

    # --------------------------------------------------------------------------- stop

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Send the notice and SIGTERM, and after the grace period SIGKILL to all its processes.

        The agent does this itself when it receives the notice, so that its pod keeps the
        termination message. If the agent does not poll, the kubelet ends the pod.
        """
        state = self._registry.state(worker)
        if state is None or state.over:
            return
        if state.asked is not None and state.asked.kind == "cancel" and notice.kind == "pause":
            return
        state.asked = notice
        if self.admits.let_wait(state):
            self._monitor.end(state, WorkerEnd(None, EndedBy.NOTICE))
            return
        self.agent_api.notify(worker, notice)
        self._monitor.watch(worker)
        attempt = self._registry.attempts[worker.job, worker.attempt]
        if not attempt.uid:
            self._ask(attempt, self._take_up)
        if state.pod is not None:  # may exist before the request that created its Job was answered
            self._monitor.stop(state, state.pod)

    async def forget(self, job: str) -> None:
        """Delete all data of an ended job. Raises Refused if the job runs."""
        if self._registry.live(job):
            raise Refused("the files of a running job cannot be deleted; cancel it first")
        self._queue.ask(("forget", job), partial(self.job_writer.delete_jobs, job))
        for key in [key for key in self._registry.attempts if key[0] == job]:
            del self._registry.attempts[key]
        await asyncio.to_thread(self._folders.remove, job)

    async def prune(self, jobs: Sequence[str], part: Part) -> None:
        """Delete one kind of files of ended jobs; files on users' volumes are kept."""
        over = [job for job in jobs if not self._registry.live(job)]
        await asyncio.to_thread(self._folders.prune, over, part)

    # --------------------------------------------------------------------------- watching

    def _pod_changed(self, pod: PodView, gone: bool) -> None:
        if not self._open:
            return
        if pod.foreign:
            pod = self.admits.as_seen(pod, gone)
        if pod.job:
            self._monitor.pod_changed(pod, gone)
        elif pod.lease:
            self._notebooks.pod_changed(pod, gone)

    def _why_not(self, name: str) -> str | None:
        node = self._informers.node(name)
        gone = f"node {name} no longer exists"
        return gone if node is None else why_not(node, self._settings.tolerations)

    def _ask(
        self, attempt: AttemptState, action: Callable[[AttemptState], Coroutine[None, None, None]]
    ) -> None:
        self._queue.ask((attempt.name, action.__name__), partial(action, attempt))

    def _log_ended(self, worker: WorkerId) -> bool:
        state = self._registry.state(worker)
        return self._folders.worker(worker).exists() if state is None else state.over
