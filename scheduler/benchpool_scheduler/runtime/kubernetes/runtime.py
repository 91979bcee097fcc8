"""Workers as pods of a cluster: the Kubernetes side of the runtime port.

What runs is known from the API server, not from memory: Jobs say which attempts there are and where
their workers go, pods how far each came. Nothing here decides when to start or stop. Everything
that must be done is done again until it is done; a call of the port never waits for the cluster.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path

from benchpool_scheduler.contract_kubernetes import ADMISSION_GATE
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.kube import Connection, KubeFailure
from benchpool_scheduler.runtime import (
    Device,
    EndedBy,
    Launch,
    LogChunk,
    NodeFacts,
    Notice,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
    WorkerStarted,
)
from benchpool_scheduler.runtime.kubernetes import finding, manifests, verdicts
from benchpool_scheduler.runtime.kubernetes.book import Attempt, Book, Seat
from benchpool_scheduler.runtime.kubernetes.desk import Desk
from benchpool_scheduler.runtime.kubernetes.doing import Doing
from benchpool_scheduler.runtime.kubernetes.following import Following
from benchpool_scheduler.runtime.kubernetes.making import Maker
from benchpool_scheduler.runtime.kubernetes.reading import WorkerLogs
from benchpool_scheduler.runtime.kubernetes.room import Room
from benchpool_scheduler.runtime.kubernetes.seen import PodSeen
from benchpool_scheduler.runtime.kubernetes.settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.tokens import Tokens
from benchpool_scheduler.runtime.local.folders import Folders

log = logging.getLogger(__name__)

TICK_S = 1.0
MISSING_S = 15.0
"""A pod that should be there is looked for after this."""
AGENT_SLACK_S = 60.0
"""An agent that heard a notice may take so much longer than the grace to send what it has."""
QUICK_S = 5
"""Grace of pods whose command does not run."""


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
        self._maker = Maker(connection, settings, self.tokens, epoch)
        self._book = Book()
        self._events: asyncio.Queue[WorkerEvent | None] = asyncio.Queue()
        self.desk = Desk(
            self._folders,
            self._events.put_nowait,
            log_bytes=settings.log_bytes,
            carry_bytes=settings.carry_bytes,
        )
        self._room = Room(settings, self._book)
        self._following = Following(connection, self._pod_changed, self._room.changed)
        self._logs = WorkerLogs(self._folders, self.desk, self._log_ended)
        self._doing = Doing()
        self._watched: set[WorkerId] = set()
        self._open = False
        self._ticker: asyncio.Task[None] | None = None

    # --------------------------------------------------------------------------- life

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Find the workers of an earlier service again, and end those nobody expects."""
        await self._following.start()
        found = await finding.find(self._connection, self._settings, self._book, expected)
        self._open = True
        self._room.opened()
        for pod in list(self._following.pods):
            self._pod_changed(pod, False)
        for worker in found.lost:
            text = "the scheduler was restarted before its pods were made"
            self._tell(WorkerEnded(worker, time.time(), None, EndedBy.LOST, text))
        for name in found.unexpected:
            await self._maker.delete_job(name)
        for attempt in self._book.attempts.values():
            self._ask(attempt, self._take_up_again)
        self._ticker = asyncio.create_task(self._tick())

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

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return where a claim can be used; ``NAMESPACE/NAME``, or a name beside the jobs."""
        namespace, _, name = claim.rpartition("/")
        return self._following.nodes_for_claim(namespace or self._settings.namespace, name)

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
        if gated and not await self._maker.has_secret(attempt.name):
            text = "the scheduler was restarted before its pods could begin"
            for seat in gated:
                self._give_back(seat, verdicts.Trouble("half", text, 0.0, EndedBy.LOST, False))
            return
        await self._take_up(attempt)

    async def _make(self, attempt: Attempt) -> bool:
        """Create or enlarge the Job; false when there is nothing to be made."""
        if all(seat.asked is not None for seat in attempt.live) and not attempt.uid:
            for seat in list(attempt.live):
                self._end(seat, verdicts.End(None, EndedBy.NOTICE, "it was stopped before"))
            return False
        launch = next((s.launch for s in attempt.live if s.launch is not None), None)
        if launch is None or not attempt.whole:
            return False
        try:
            if attempt.uid:
                await self._maker.grow(attempt, launch)
            else:
                await self._maker.make(attempt, launch)
        except (KubeFailure, InvalidInput) as refused:
            text = f"the cluster does not take it: {refused}"[: verdicts.TEXT_LIMIT]
            log.warning("attempt %s was not made: %s", attempt.name, refused)
            for seat in list(attempt.live):
                if seat.pod is None:
                    self._end(seat, verdicts.End(None, EndedBy.COULD_NOT_START, text))
            return False
        attempt.looked = time.monotonic()
        return True

    async def _open_gate(self, seat: Seat) -> bool:
        pod = seat.pod
        if pod is None or not seat.gated:
            return True
        try:
            return await self._maker.open(pod, seat.node, seat.slots)
        except KubeFailure as refused:
            text = f"the cluster does not let it begin: {refused}"[: verdicts.TEXT_LIMIT]
            self._give_back(seat, verdicts.Trouble("gate", text, 0.0, EndedBy.LOST, False))
            return False

    # --------------------------------------------------------------------------- benches

    async def hold(self, lease: str, slots: tuple[str, ...]) -> None:
        """Let the notebook pod of a lease begin on these slots, now or when it comes.

        Call it for every lease in force after a start too; repeating it does nothing.
        """
        self._room.hold(lease, slots)
        for pod in list(self._following.pods):
            if pod.lease == lease:
                self._notebook_changed(pod)

    def release(self, lease: str) -> None:
        """Forget a lease; until its pod is gone, its slots are nobody's."""
        self._room.release(lease)

    def _notebook_changed(self, pod: PodSeen) -> None:
        slots = self._room.leased.get(pod.lease)
        if slots and ADMISSION_GATE in pod.gates and not pod.leaving:
            self._doing.ask(("lease", pod.uid), partial(self._open_notebook, pod, slots))

    async def _open_notebook(self, pod: PodSeen, slots: tuple[str, ...]) -> None:
        node = slots[0].split("/")[0]
        try:
            await self._maker.open(pod, node, slots)
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
        self._watched.add(worker)
        attempt = self._book.attempts[worker.job, worker.attempt]
        if not attempt.uid:
            self._ask(attempt, self._take_up)
        elif seat.pod is not None:
            self._stop_pod(seat, seat.pod)

    def _stop_pod(self, seat: Seat, pod: PodSeen) -> None:
        """Delete the pod of a worker that is to stop: at once, or when its agent is overdue."""
        notice, now = seat.asked, time.monotonic()
        if notice is None or pod.leaving:
            return
        grace_s = math.ceil(notice.grace_s)
        if not pod.running:
            self._delete(seat, pod, 1 if not pod.node else QUICK_S)
        elif self.desk.listens(seat.worker):
            seat.kill_at, seat.kill_grace_s = now + grace_s + AGENT_SLACK_S, 1
        else:
            self._delete(seat, pod, grace_s + manifests.MARGIN_S)

    def _delete(self, seat: Seat, pod: PodSeen, grace_s: int) -> None:
        seat.kill_at = None
        self._doing.ask(seat.worker, partial(self._maker.delete_pod, pod, grace_s))

    def _give_back(self, seat: Seat, trouble: verdicts.Trouble) -> None:
        """Give up waiting for a worker to begin; it has ended when its pod is gone."""
        log.warning("%s is given back: %s", seat.worker, trouble.text)
        seat.given_back = trouble
        if seat.pod is None:
            self._end(seat, verdicts.End(None, trouble.by, trouble.text))
        else:
            self._delete(seat, seat.pod, QUICK_S)

    async def forget(self, job: str) -> None:
        """Delete all that is kept of an ended job."""
        if self._book.live(job):
            raise Refused("the files of a running job cannot be deleted; cancel it first")
        for key in [key for key in self._book.attempts if key[0] == job]:
            self._ask(self._book.attempts[key], self._remove)
        await asyncio.to_thread(self._folders.remove, job)

    # --------------------------------------------------------------------------- watching

    def _pod_changed(self, pod: PodSeen, gone: bool) -> None:
        if not self._open:
            return
        if pod.lease and not pod.job:
            if not gone:
                self._notebook_changed(pod)
            return
        attempt = self._book.attempts.get((pod.job, pod.attempt))
        seat = None if attempt is None else attempt.seats.get(pod.index)
        if attempt is None or seat is None or seat.over:
            return
        if seat.pod is not None and seat.pod.uid != pod.uid:
            return  # a second pod of one worker stays behind its gate
        seat.pod, seat.gone = pod, gone
        self._look_at(attempt, seat)

    def _look_at(self, attempt: Attempt, seat: Seat) -> None:
        pod = seat.pod
        if pod is None:
            return
        if not seat.told_started and (pod.running or (pod.ended and pod.ended.started_at)):
            seat.told_started = True
            since = pod.since or (pod.ended.started_at if pod.ended else None)
            if seat.expected:
                self._tell(WorkerStarted(seat.worker, verdicts.seconds(since) or time.time()))
        end = verdicts.end_of(
            pod, gone=seat.gone, asked=seat.asked is not None, given_back=seat.given_back
        )
        if end is not None:
            self._end(seat, end)
            return
        if seat.asked is not None and seat.kill_at is None and not pod.leaving:
            self._stop_pod(seat, pod)
        trouble = verdicts.trouble_of(pod, self._settings)
        if trouble is None or seat.trouble is None or trouble.kind != seat.trouble.kind:
            seat.since = time.monotonic()
        seat.trouble = trouble
        if trouble is not None:
            self._watched.add(seat.worker)
        if seat.gated and not seat.opened and attempt.uid:
            self._ask(attempt, self._take_up)

    def _end(self, seat: Seat, end: verdicts.End) -> None:
        """Tell of a worker's end, once."""
        seat.over = True
        seat.trouble = seat.kill_at = None
        if end.refused:
            self._room.refuse(seat.node, end.text or "it refused a pod")
        self.desk.leave(seat.worker)
        if seat.expected:
            at = end.at or time.time()
            self._tell(WorkerEnded(seat.worker, at, end.exit_code, end.by, end.text))
        attempt = self._book.attempts.get((seat.worker.job, seat.worker.attempt))
        if attempt is not None and attempt.over:
            attempt.over_since = time.monotonic()
        self._room.changed()

    def _tell(self, event: WorkerEvent) -> None:
        self._events.put_nowait(event)

    # --------------------------------------------------------------------------- in time

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            try:
                self._look_around(time.monotonic())
            except Exception:
                log.exception("looking after workers failed; it is tried again")

    def _look_around(self, now: float) -> None:
        for worker in list(self._watched):
            seat = self._book.seat(worker)
            if seat is None or seat.over or (seat.trouble is None and seat.asked is None):
                self._watched.discard(worker)
            else:
                self._look_in_time(seat, now)
        for attempt in list(self._book.attempts.values()):
            if attempt.over_since is not None:
                if now - attempt.over_since > self._settings.keep_ended_s:
                    self._ask(attempt, self._remove)
            elif attempt.uid and now - attempt.looked > MISSING_S and attempt.missing():
                attempt.looked = now
                self._ask(attempt, self._look_for)

    def _look_in_time(self, seat: Seat, now: float) -> None:
        pod = seat.pod
        if pod is None:
            return
        if seat.kill_at is not None and now >= seat.kill_at:
            self._delete(seat, pod, seat.kill_grace_s)
        trouble = seat.trouble
        if trouble is not None and seat.given_back is None and now - seat.since >= trouble.bear_s:
            self._give_back(seat, trouble)

    async def _look_for(self, attempt: Attempt) -> None:
        """Find out why pods of an attempt are not there, and give it back if they will not come."""
        trouble = await finding.why_missing(
            self._connection, self._settings, attempt, time.monotonic()
        )
        for seat in attempt.missing() if trouble is not None else ():
            if trouble is not None:
                self._give_back(seat, trouble)

    def _ask(
        self, attempt: Attempt, action: Callable[[Attempt], Coroutine[None, None, None]]
    ) -> None:
        self._doing.ask((attempt.name, action.__name__), partial(action, attempt))

    async def _remove(self, attempt: Attempt) -> None:
        """Delete an ended attempt's Job with all it owns."""
        await self._maker.delete_job(attempt.name)
        self._book.attempts.pop((attempt.job, attempt.number), None)

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
