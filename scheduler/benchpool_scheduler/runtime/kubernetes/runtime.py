"""Workers as pods of a cluster: the Kubernetes side of the runtime port.

What runs is known from the API server, not from memory: Jobs say which attempts there are and where
their workers go, pods how far each came. Nothing here decides when to start or stop. Everything
that must be done is done again until it is done; a call of the port never waits for the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from functools import partial
from pathlib import Path

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.kube import Connection, KubeFailure
from benchpool_scheduler.runtime import (
    Device,
    EndedBy,
    Launch,
    LogChunk,
    NodeFacts,
    Notice,
    Pinned,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
)
from benchpool_scheduler.runtime.kubernetes import finding, manifests, verdicts
from benchpool_scheduler.runtime.kubernetes.book import Attempt, Book, Seat
from benchpool_scheduler.runtime.kubernetes.desk import Desk
from benchpool_scheduler.runtime.kubernetes.doing import Doing
from benchpool_scheduler.runtime.kubernetes.following import Following
from benchpool_scheduler.runtime.kubernetes.lookout import Lookout
from benchpool_scheduler.runtime.kubernetes.making import Maker
from benchpool_scheduler.runtime.kubernetes.reading import WorkerLogs
from benchpool_scheduler.runtime.kubernetes.room import Room
from benchpool_scheduler.runtime.kubernetes.seen import NodeSeen, PodSeen
from benchpool_scheduler.runtime.kubernetes.settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.slots import why_not
from benchpool_scheduler.runtime.kubernetes.tokens import Tokens
from benchpool_scheduler.runtime.kubernetes.verdicts import TEXT_LIMIT
from benchpool_scheduler.worker.folders import Folders

log = logging.getLogger(__name__)


class KubernetesRuntime:
    """Run workers as pods; see the port for the contract of each verb.

    Args:
        connection: To the API server; closed by the owner.
        state: The state folder, for logs and what agents send.
        secret: At least 32 bytes, the same in every replica; agents' tokens are made with it.
        epoch: Returns the epoch of our leadership.
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
        self.tokens = Tokens(secret)
        self.maker = Maker(connection, settings, self.tokens, epoch)
        self._book = Book()
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self.desk = Desk(
            self._folders,
            self._events.put_nowait,
            log_bytes=settings.log_bytes,
        )
        self._room = Room(settings, self._book)
        self._following = Following(
            connection, self._pod_changed, self._room.changed, settings.namespace
        )
        self._logs = WorkerLogs(self._folders, self.desk, self._log_ended)
        self._doing = Doing()
        self._lookout = Lookout(
            connection,
            settings,
            self._book,
            maker=self.maker,
            room=self._room,
            desk=self.desk,
            doing=self._doing,
            tell=self._events.put_nowait,
            take_up=lambda attempt: self._ask(attempt, self._take_up),
            why_not=self._why_not,
        )
        self._notebooks: dict[str, PodSeen] = {}
        self._open = False
        self._ticker: asyncio.Task[None] | None = None

    @property
    def writes(self) -> int:
        """Number of writes that the API server has taken from us."""
        return self._connection.writes

    @property
    def seen_nodes(self) -> Iterable[NodeSeen]:
        """Nodes as last seen."""
        return self._following.nodes

    @property
    def seen_pods(self) -> Iterable[PodSeen]:
        """Pods of ours as last seen."""
        return self._following.pods

    # --------------------------------------------------------------------------- life

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Find the workers of an earlier service again, and end those nobody expects."""
        await self._following.start()
        pods = list(self._following.pods)
        found = await finding.find(self._connection, self._settings, self._book, expected, pods)
        self._open = True
        self._room.opened()
        for pod in list(self._following.pods):
            self._pod_changed(pod, False)
        for worker in found.finished:
            self._events.put_nowait(WorkerEnded(worker, time.time(), 0, EndedBy.ITSELF))
        for worker in found.lost:
            text = "the scheduler was restarted before its pods were made"
            self._events.put_nowait(WorkerEnded(worker, time.time(), None, EndedBy.LOST, text))
        for name in found.unexpected:
            await self.maker.delete_job(name)
        for attempt in self._book.attempts.values():
            self._ask(attempt, self._take_up_again)
        self._ticker = asyncio.create_task(self._lookout.run())

    async def close(self) -> None:
        """Let go of everything; workers run on."""
        if self._ticker is not None:
            self._ticker.cancel()
        await self._doing.close()
        await self._following.close()
        self._events.put_nowait(None)

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what happens to workers, in order, until ``close``; one consumer."""
        while (event := await self._events.get()) is not None:
            yield event

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now; the same tuple again while nothing has changed."""
        await self._following.start()
        return self._room.devices(self._following)

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the nodes as they are now, under the same terms."""
        await self._following.start()
        return self._room.nodes(self._following)

    async def machines_changed(self) -> None:
        """Wait until a node, or what others hold there, has changed; one consumer."""
        await self._following.news.wait()
        self._following.news.clear()

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return where a claim can be used; ``NAMESPACE/NAME``, or a name beside the jobs."""
        namespace, _, name = claim.rpartition("/")
        return self._following.nodes_for_claim(namespace or self._settings.namespace, name)

    def results(self, job: str, worker: int) -> Path | None:
        """Return the packed results that a worker has sent, None for none."""
        packed = self.desk.carried(job, "results", worker)
        return packed if packed.is_file() else None

    def home_of(self, user: str) -> str | None:
        """Return the claim of a user's home, where jobs may mount it beside the user's server."""
        return self._following.home_of(self._settings.namespace, user)

    def pinned(self, user: str, image: str) -> Pinned:
        """Return an image by the digest that a notebook of the user runs it with."""
        return self._following.pinned(user, image)

    # --------------------------------------------------------------------------- start

    async def start(self, launch: Launch) -> None:
        """Start a worker; the outcome comes as an event. Repeating it does nothing.

        A gang is made when all its workers were launched. Errors: InvalidInput.
        """
        worker, now = launch.worker, time.monotonic()
        if launch.gpus:
            try:
                manifests.resource_of(launch.gpus)
            except ValueError as mixed:
                raise InvalidInput(f"It cannot be started: {mixed}.", field="gpus") from mixed
        attempt = self._book.attempt(worker.job, worker.attempt, now)
        attempt.wanted = max(attempt.wanted, len(launch.nodes))
        if worker.worker in attempt.seats:
            return
        node = launch.nodes[worker.worker]
        attempt.seats[worker.worker] = Seat(worker, node, launch.gpus, launch)
        self._room.changed()
        if attempt.whole:
            self._ask(attempt, self._take_up)

    async def _take_up(self, attempt: Attempt) -> None:
        """Make what an attempt lacks, and open its gates when it is whole."""
        lacking = not attempt.uid or attempt.size < attempt.wanted
        if lacking and not await self._make(attempt):
            return
        opening = attempt.to_open()
        opened = await asyncio.gather(*(self._open_gate(seat) for seat in opening))
        for seat, done in zip(opening, opened, strict=True):
            seat.opened = seat.opened or done

    async def _take_up_again(self, attempt: Attempt) -> None:
        """Go on with an attempt of an earlier service; one that was half made is given back."""
        gated = [seat for seat in attempt.live if seat.gated]
        if gated and not await self.maker.has_secret(attempt.name):
            text = "the scheduler was restarted before its pods could begin"
            for seat in gated:
                self._lookout.give_back(seat, verdicts.Trouble("half", text, 0.0, EndedBy.LOST))
            return
        await self._take_up(attempt)

    async def _make(self, attempt: Attempt) -> bool:
        """Create or enlarge the Job; false when there is nothing to be made."""
        if all(seat.asked is not None for seat in attempt.live) and not attempt.uid:
            for seat in list(attempt.live):
                self._lookout.end(seat, verdicts.End(None, EndedBy.NOTICE, "it was stopped before"))
            if attempt.begun:
                await self.maker.delete_job(attempt.name)
            return False
        # The newest one knows of all workers.
        known = [seat.launch for seat in attempt.live if seat.launch is not None]
        launch = max(known, key=lambda one: len(one.nodes), default=None)
        if launch is None or not attempt.whole:
            return False
        try:
            if attempt.size:
                await self.maker.grow(attempt, launch)
            else:
                await self.maker.make(attempt, launch)
        except (KubeFailure, InvalidInput) as refused:
            text = f"the cluster does not take it: {refused}"[:TEXT_LIMIT]
            log.warning("attempt %s was not made: %s", attempt.name, refused)
            for seat in list(attempt.live):
                if seat.pod is None:
                    self._lookout.end(seat, verdicts.End(None, EndedBy.COULD_NOT_START, text))
            return False
        attempt.looked = time.monotonic()
        return True

    async def _open_gate(self, seat: Seat) -> bool:
        pod = seat.pod
        if pod is None or not seat.gated:
            return True
        try:
            return await self.maker.open(pod, seat.node, seat.slots)
        except KubeFailure as refused:
            text = f"the cluster does not let it begin: {refused}"[:TEXT_LIMIT]
            self._lookout.give_back(seat, verdicts.Trouble("gate", text, 0.0, EndedBy.LOST))
            return False

    # --------------------------------------------------------------------------- benches

    async def hold(self, lease: str, slots: tuple[str, ...]) -> None:
        """Let the notebook pod of a lease begin on these slots, now or when it comes.

        Call it for every lease in force after a start too; repeating it does nothing.
        """
        self._room.hold(lease, slots)
        pod = self._notebooks.get(lease)
        if pod is not None:
            self._notebook_changed(pod)

    def release(self, lease: str) -> None:
        """Forget a lease; until its pod is gone, its slots are nobody's."""
        self._room.release(lease)

    def _notebook_changed(self, pod: PodSeen) -> None:
        held = self._room.leased.get(pod.lease)
        if held and ADMISSION_GATE in pod.gates and not pod.leaving:
            self._doing.ask(("lease", pod.uid), partial(self._open_notebook, pod, held))
        if pod.unschedulable is not None and held:
            self._doing.ask(("room", pod.uid), partial(self._notebook_waits, pod, held))

    async def _notebook_waits(self, pod: PodSeen, held: tuple[str, ...]) -> None:
        """Leave a node alone that cannot take the notebook it was chosen for.

        A start of a server tries one node alone: the next one finds this node left out.
        """
        await asyncio.sleep(self._settings.unschedulable_s)
        now = self._notebooks.get(pod.lease)
        if now is None or now.uid != pod.uid or now.unschedulable is None or now.node:
            return
        node = held[0].split("/")[0]
        why = self._why_not(node) or now.unschedulable
        self._room.leave_alone(
            node, f"{node} cannot take the notebook {now.name}: {why}"[:TEXT_LIMIT]
        )

    async def _open_notebook(self, pod: PodSeen, held: tuple[str, ...]) -> None:
        node = held[0].split("/")[0]
        try:
            await self.maker.open(pod, node, held)
        except KubeFailure as refused:
            log.error("the notebook pod %s was not opened: %s", pod.name, refused)

    # --------------------------------------------------------------------------- stop

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Give notice, then SIGTERM, after the grace SIGKILL to all it started.

        The agent does that by itself when it hears the notice, so that its pod stays with what it
        has to say; one that does not hear is told by the kubelet.
        """
        seat = self._book.seat(worker)
        if seat is None or seat.over:
            return
        if seat.asked is not None and seat.asked.kind == "cancel" and notice.kind == "pause":
            return
        seat.asked = notice
        self.desk.notify(worker, notice)
        self._lookout.watch(worker)
        attempt = self._book.attempts[worker.job, worker.attempt]
        if not attempt.uid:
            self._ask(attempt, self._take_up)
        elif seat.pod is not None:
            self._lookout.stop(seat, seat.pod)

    async def forget(self, job: str) -> None:
        """Delete all that is kept of an ended job."""
        if self._book.live(job):
            raise Refused("the files of a running job cannot be deleted; cancel it first")
        self._doing.ask(("forget", job), partial(self.maker.delete_jobs, job))
        for key in [key for key in self._book.attempts if key[0] == job]:
            del self._book.attempts[key]
        await asyncio.to_thread(self._folders.remove, job)

    # --------------------------------------------------------------------------- watching

    def _pod_changed(self, pod: PodSeen, gone: bool) -> None:
        if not self._open:
            return
        if pod.job:
            self._lookout.pod_changed(pod, gone)
        elif pod.lease and gone:
            self._notebooks.pop(pod.lease, None)
        elif pod.lease:
            self._notebooks[pod.lease] = pod
            self._notebook_changed(pod)

    def _why_not(self, name: str) -> str | None:
        node = self._following.node(name)
        if node is None:
            return f"there is no node {name} any more"
        return why_not(node, self._settings.tolerations)

    def _ask(
        self, attempt: Attempt, action: Callable[[Attempt], Coroutine[None, None, None]]
    ) -> None:
        self._doing.ask((attempt.name, action.__name__), partial(action, attempt))

    # --------------------------------------------------------------------------- logs

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return at most ``limit`` bytes from ``offset``, or from where the log goes on."""
        return await self._logs.read(worker, offset, limit)

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return the first offset that came at ``since`` or later; None: the present end."""
        return await self._logs.offset_at(worker, since)

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Wait until there are bytes after ``offset`` or the log ended; false on time-out."""
        return await self._logs.wait(worker, offset, timeout_s)

    def _log_ended(self, worker: WorkerId) -> bool:
        seat = self._book.seat(worker)
        return self._folders.worker(worker).exists() if seat is None else seat.over
