"""Looks at pods and tells what became of workers; ends what is to end, gives back what hangs."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine
from functools import partial

from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, attempt_name
from benchpool_scheduler.kube import Connection
from benchpool_scheduler.runtime import EndedBy, WorkerEnded, WorkerEvent, WorkerId, WorkerStarted
from benchpool_scheduler.runtime.kubernetes import finding, manifests, verdicts
from benchpool_scheduler.runtime.kubernetes.book import Attempt, Book, Seat
from benchpool_scheduler.runtime.kubernetes.desk import Desk
from benchpool_scheduler.runtime.kubernetes.doing import Doing
from benchpool_scheduler.runtime.kubernetes.making import Maker
from benchpool_scheduler.runtime.kubernetes.room import Room
from benchpool_scheduler.runtime.kubernetes.seen import PodSeen
from benchpool_scheduler.runtime.kubernetes.settings import ClusterSettings

log = logging.getLogger(__name__)

TICK_S = 1.0
MISSING_S = 15.0
"""A pod that should be there is looked for after this; while others still come, much later."""
WHILE_OTHERS_COME = 4
MOST_LOOKS = 5
"""So many are looked for in one turn: the API server keeps no index of events."""
AGENT_SLACK_S = 60.0
"""An agent that heard a notice may take so much longer than the grace to send what it has."""
QUICK_S = 5
"""Grace of pods whose command does not run."""


class Lookout:
    """Follows the workers in the book.

    Args:
        tell: Takes events. ``take_up``: goes on with an attempt whose pods have come.
        why_not: Tells why nothing of ours may be started on a node.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ClusterSettings,
        book: Book,
        *,
        maker: Maker,
        room: Room,
        desk: Desk,
        doing: Doing,
        tell: Callable[[WorkerEvent], None],
        take_up: Callable[[Attempt], None],
        why_not: Callable[[str], str | None],
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._book = book
        self._maker = maker
        self._room = room
        self._desk = desk
        self._doing = doing
        self._tell = tell
        self._take_up = take_up
        self._why_not = why_not
        self._watched: set[WorkerId] = set()
        self._came = -math.inf

    def pod_changed(self, pod: PodSeen, gone: bool) -> None:
        """Take a worker's pod as it is now, or was last."""
        attempt = self._book.attempts.get((pod.job, pod.attempt))
        seat = None if attempt is None else attempt.seats.get(pod.index)
        ours = pod.namespace == self._settings.namespace
        if attempt is None and ours and ADMISSION_GATE in pod.gates and not gone:
            # Of an attempt that ended before we began, whose Job has made another pod for one that
            # was deleted; or a leader before us was stopped in a write, and went on after we began.
            name = attempt_name(pod.job, pod.attempt)
            log.info("%s is not under way, and its pod waits in vain: it is deleted", name)
            self._doing.ask(("unknown", name), partial(self._maker.delete_job, name))
            return
        if attempt is None or seat is None or seat.over:
            return
        if seat.pod is not None and seat.pod.uid != pod.uid:
            return  # a second pod of one worker stays behind its gate
        if seat.pod is None:
            self._came = time.monotonic()
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
            self.end(seat, end)
            return
        if seat.asked is not None and seat.kill_at is None and not pod.leaving:
            self.stop(seat, pod)
        trouble = verdicts.trouble_of(
            pod, self._settings, seat.node, self._why_not(seat.node) if pod.unschedulable else None
        )
        if trouble is None or seat.trouble is None or trouble.kind != seat.trouble.kind:
            seat.since = time.monotonic()
        seat.trouble = trouble
        if trouble is not None:
            self._watched.add(seat.worker)
        if seat.gated and not seat.opened and attempt.uid:
            self._take_up(attempt)

    def end(self, seat: Seat, end: verdicts.End) -> None:
        """Tell of a worker's end, once."""
        seat.over = True
        seat.trouble = seat.kill_at = None
        if end.by is EndedBy.NOT_TAKEN:
            self._room.refuse(seat.node, seat.worker.job, end.text or "it refused a pod")
        self._desk.leave(seat.worker)
        if seat.expected:
            at = end.at or time.time()
            self._tell(WorkerEnded(seat.worker, at, end.exit_code, end.by, end.text))
        attempt = self._book.attempts.get((seat.worker.job, seat.worker.attempt))
        if attempt is not None and attempt.over:
            attempt.over_since = time.monotonic()
        self._room.changed()

    # --------------------------------------------------------------------------- stop

    def stop(self, seat: Seat, pod: PodSeen) -> None:
        """Delete the pod of a worker that is to stop: at once, or when its agent is overdue."""
        notice, now = seat.asked, time.monotonic()
        if notice is None or pod.leaving:
            return
        grace_s = math.ceil(notice.grace_s)
        if not pod.running:
            self._delete(seat, pod, 1 if not pod.node else QUICK_S)
        elif self._desk.listens(seat.worker):
            seat.kill_at, seat.kill_grace_s = now + grace_s + AGENT_SLACK_S, 1
        else:
            self._delete(seat, pod, grace_s + manifests.MARGIN_S)

    def _delete(self, seat: Seat, pod: PodSeen, grace_s: int) -> None:
        seat.kill_at = None
        self._doing.ask(seat.worker, partial(self._maker.delete_pod, pod, grace_s))

    def give_back(self, seat: Seat, trouble: verdicts.Trouble) -> None:
        """Give up waiting for a worker to begin; it has ended when its pod is gone."""
        log.warning("%s is given back: %s", seat.worker, trouble.text)
        seat.given_back = trouble
        if seat.pod is None:
            self.end(seat, verdicts.End(None, trouble.by, trouble.text))
            attempt = self._book.attempts.get((seat.worker.job, seat.worker.attempt))
            if attempt is not None and attempt.over:
                # Its pods may still come, and would wait behind their gates for nobody.
                self._ask(attempt, self.remove)
        else:
            self._delete(seat, seat.pod, QUICK_S)

    # --------------------------------------------------------------------------- in time

    async def run(self) -> None:
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
        patience_s = MISSING_S * (WHILE_OTHERS_COME if now - self._came < MISSING_S else 1)
        looks = MOST_LOOKS
        for attempt in list(self._book.attempts.values()):
            if attempt.over_since is not None:
                if now - attempt.over_since > self._settings.keep_ended_s:
                    self._ask(attempt, self.remove)
            elif looks and attempt.uid and now - attempt.looked > patience_s:
                attempt.looked = now
                if attempt.missing():
                    looks -= 1
                    self._ask(attempt, self._look_for)

    def _look_in_time(self, seat: Seat, now: float) -> None:
        pod = seat.pod
        if pod is None:
            return
        if seat.kill_at is not None and now >= seat.kill_at:
            self._delete(seat, pod, seat.kill_grace_s)
        trouble = seat.trouble
        if trouble is not None and seat.given_back is None and now - seat.since >= trouble.bear_s:
            self.give_back(seat, trouble)

    async def _look_for(self, attempt: Attempt) -> None:
        """Find out why pods of an attempt are not there, and give it back if they will not come."""
        trouble = await finding.why_missing(
            self._connection, self._settings, attempt, time.monotonic()
        )
        for seat in attempt.missing() if trouble is not None else ():
            if trouble is not None:
                self.give_back(seat, trouble)

    async def remove(self, attempt: Attempt) -> None:
        """Delete an ended attempt's Job with all it owns."""
        await self._maker.delete_job(attempt.name)
        self._book.attempts.pop((attempt.job, attempt.number), None)

    def watch(self, worker: WorkerId) -> None:
        """Look at a worker again in time."""
        self._watched.add(worker)

    def _ask(
        self, attempt: Attempt, action: Callable[[Attempt], Coroutine[None, None, None]]
    ) -> None:
        self._doing.ask((attempt.name, action.__name__), partial(action, attempt))
