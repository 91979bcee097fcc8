"""Background task that finds due notifications and sends them.

Notifications are derived from the facts again in each round, and sent ones are recorded by ID. A
restart therefore loses none that are due. An ID is recorded only after its message was sent, so a
crash in between sends the message again with the same ID.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.notifications import (
    addresses,
    conditions,
    job_messages,
    pace,
    schedule_messages,
    site,
    sweep_messages,
)
from benchpool_scheduler.notifications.bundle import Bundle, bundled
from benchpool_scheduler.notifications.delivery_state import (
    KeptAddress,
    KeptNotifications,
    Subscription,
)
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.notifications.schedule_messages import KnownSchedules
from benchpool_scheduler.notifications.sending import NotificationSender
from benchpool_scheduler.notifications.sweep_messages import KnownSweeps
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState

log = logging.getLogger(__name__)

TICK_S = 30.0
"""Maximum interval between rounds, in seconds; some notifications become due by time alone."""
SETTLE_S = 0.5
"""Time in which changes are collected into one round, in seconds."""
AGAIN_S = (0.0, 10.0, 60.0, 300.0)
"""Delays before each try to reach an address, in seconds. After the last one the address is given
up, and the user's page shows the failure.
"""
REMEMBERED_S = 2 * job_messages.FRESH_S

POOL = ""
"""Recipient for the site's own addresses, which get the notifications for administrators."""

_PROBLEM = "notifications"


class NotificationDelivery:
    """Notifications that are due or being sent.

    Attributes:
        site: Settings of the site, as last read.
        quiet: Returns whether a job is a replica whose service has failed before; then no user is
            notified.
        kept: Subscriptions, and the record of sent notifications.
        again_s: Delays before each try, in seconds.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        sweeps: KnownSweeps,
        schedules: KnownSchedules,
    ) -> None:
        self._ledger, self._sweeps, self._schedules = ledger, sweeps, schedules
        self._observed = observed
        state = observed.settings.state
        self._file = observed.settings.notifications_file or state / site.FILE
        self.kept = KeptNotifications(state / "scheduler")
        self._known = False
        self.site = site.SiteNotifications()
        self.sender = NotificationSender(self.site)
        self.quiet: Callable[[str], bool] = lambda job: False
        self.again_s: Sequence[float] = AGAIN_S
        self._changed: set[str] = set()
        self._timed: set[str] = set()
        self._pending: dict[str, dict[str, Message]] = {}
        self._under_way: dict[str, Mapping[str, Message]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()

    async def open(self) -> None:
        """Read the record and the site's settings; report what is unreadable."""
        with contextlib.suppress(InvalidInput):
            await self.reload()

    async def reload(self) -> bool:
        """Read the site's settings again; return whether they have changed.

        Errors: InvalidInput with line and key. The settings in force stay, and the problem is
        reported.
        """
        try:
            found = await asyncio.to_thread(site.load, self._file)
            await self._know()
        except InvalidInput as wrong:
            stays = "The old settings stay in force" if self.site.sends else "No messages are sent"
            self._observed.report(
                _PROBLEM,
                f"{wrong.message} {stays}. Correct the file, then run "
                "`benchpool notifications reload`.",
            )
            raise
        self._observed.report(_PROBLEM, None)
        if found == self.site:
            return False
        self.site = self.sender.site = found
        self._wake.set()
        return True

    async def _know(self) -> None:
        """Read subscriptions and record, once. Errors: InvalidInput."""
        if self._known:
            return
        try:
            await self.kept.open()
        except (OSError, ValueError) as wrong:
            raise InvalidInput(
                f"Users' notification settings cannot be read: {wrong}.", code="notifications-file"
            ) from wrong
        self._known = True
        recent = self.now() - job_messages.FRESH_S
        jobs = (it for it in self._ledger.jobs() if it.live or (it.ended or 0.0) >= recent)
        self.jobs_changed([job.id for job in jobs])

    def jobs_changed(self, jobs: Collection[str]) -> None:
        """Mark jobs for the next round, if their owners have a subscription."""
        if not self.kept.subscriptions:
            return
        records = filter(None, map(self._ledger.job, jobs))
        found = {job.id for job in records if job.user in self.kept.subscriptions}
        if found:
            self._changed |= found
            self._wake.set()

    def seen(self, now: Observations) -> None:
        """Start a round soon, because an observation has changed."""
        if self.kept.subscriptions or self.site.pool:
            self._wake.set()

    def subscribed(self, user: str) -> None:
        """Mark the live jobs of a user whose subscription has changed."""
        self.jobs_changed([job.id for job in self._ledger.live() if job.user == user])

    async def run(self) -> None:
        """Find and send notifications until cancelled; wait while the site sends none."""
        while True:
            if self.site.sends:
                self._gather(self.now())
                self._send(self.now())
            try:
                async with asyncio.timeout(TICK_S if self.site.sends else None):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(SETTLE_S)
            self._wake.clear()

    async def close(self) -> None:
        """Stop; notifications being sent are sent again after the next start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.sender.close()

    def now(self) -> float:
        """Return the present time, in epoch seconds."""
        return self._observed.settings.clock.now()

    # ------------------------------------------------------------------ due notifications

    def _gather(self, now: float) -> None:
        looked, self._changed = self._changed | self._timed, set()
        self._timed = set()
        for job_id in looked:
            job = self._ledger.job(job_id)
            subscription = None if job is None else self.kept.subscriptions.get(job.user)
            if job is None or subscription is None or not subscription.addresses:
                continue
            pause = max(self._ledger.pauses(job_id), key=lambda it: it.at, default=None)
            one_of_many = self._sweeps.of_job(job_id) is not None or self.quiet(job_id)
            for message in job_messages.of_job(job, pause, subscription, now):
                if not one_of_many or message.event in sweep_messages.OF_TRIALS:
                    self._note(job.user, message)
            if job_messages.waits_for_time(job):
                self._timed.add(job_id)
        for sweep in self._sweeps.all():
            subscription = self.kept.subscriptions.get(sweep.user)
            if subscription is not None and subscription.addresses:
                for message in sweep_messages.of_sweep(sweep, subscription, now):
                    self._note(sweep.user, message)
        for schedule in self._schedules.all():
            subscription = self.kept.subscriptions.get(schedule.user)
            if subscription is not None and subscription.addresses:
                for message in schedule_messages.of_schedule(schedule, subscription, now):
                    self._note(schedule.user, message)
        self._gather_conditions(now)

    def _gather_conditions(self, now: float) -> None:
        seen = self._observed.now
        there = [*conditions.of_gpus(seen.inventory.unusable)]
        there += conditions.of_budgets(seen.hours.standing, seen.hours.renewed)
        there += conditions.of_idle_benches(seen.idle_benches)
        there += schedule_messages.of_ownerless(self._schedules.all())
        since = conditions.lasting(there, self.kept.record.since, now)
        self.kept.record = replace(self.kept.record, since=since)
        for one in there:
            for person in self._recipients(one):
                self._note(person, conditions.message(one, since[one.name]))

    def _recipients(self, one: conditions.PoolCondition) -> Iterable[str]:
        if self.site.pool and one.event is not NotificationEvent.IDLE_BENCH:
            yield POOL  # an idle bench concerns its owner only
        configuration = self._observed.now.configuration
        for name, subscription in self.kept.subscriptions.items():
            found = self._observed.now.hub_user(name)
            if found is None or one.event not in subscription.events or not subscription.addresses:
                continue
            who = Caller(name, found.admin, frozenset(found.groups))
            concerned = found.admin
            if one.user or one.project:
                led = bool(one.project) and rights.leads(who, one.project, configuration)
                concerned = name == one.user or led
            if concerned:
                yield name

    def _note(self, person: str, message: Message) -> None:
        delivered = self.kept.record.told.get(person, {})
        if message.id not in delivered and message.id not in self._under_way.get(person, {}):
            self._pending.setdefault(person, {})[message.id] = message

    # ------------------------------------------------------------------ sending

    def _send(self, now: float) -> None:
        """Start sending due bundles; each recipient has at most one bundle being sent."""
        allowed = pace.SendingPace(self.site.bundle_minutes * 60.0, self.site.per_hour)
        for person, messages in self._pending.items():
            gone = person != POOL and self._observed.now.hub_user(person) is None
            if gone or person in self._under_way or not messages:
                continue
            sent = pace.kept(self.kept.record.sent.get(person, ()), now)
            if pace.earliest(sent, allowed, now) > now:
                continue
            self.kept.record.sent[person] = [*sent, now]
            self._under_way[person] = going = dict(messages)
            messages.clear()
            task = asyncio.create_task(self._deliver(person, going))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _deliver(self, person: str, messages: Mapping[str, Message]) -> None:
        """Send a bundle to all addresses of a recipient with retries, then record it as sent."""
        bundle, left = self.bundle(messages.values()), self._addresses(person)
        try:
            for pause_s in self.again_s:
                await asyncio.sleep(pause_s)
                left = await self.attempt(person, left, bundle)
                if not left:
                    break
            await self._remember(person, messages)
        finally:
            del self._under_way[person]
            self._wake.set()

    async def attempt(
        self, person: str, to: Sequence[KeptAddress], bundle: Bundle
    ) -> Sequence[KeptAddress]:
        """Send a bundle and return the addresses that it did not reach; results are stored."""
        now = self.now()
        results = await asyncio.gather(*(self._try(person, one, bundle, now) for one in to))
        came = {one.id: why for one, why in zip(to, results, strict=True)}
        if person == POOL:
            failed = [why for why in results if why is not None]
            problem = f"Messages to the site's own addresses fail: {failed[0]}" if failed else None
            self._observed.report(_PROBLEM, problem)
        else:
            try:
                await self.kept.change(person, lambda own: _with_results(own, came, now))
            except Unavailable as unwritten:
                log.warning("%s", unwritten)
        return [one for one in to if came[one.id] is not None]

    async def _try(self, person: str, to: KeptAddress, bundle: Bundle, now: float) -> str | None:
        gone = None if person == POOL else addresses.no_longer(to.url, self.site)
        try:
            return gone or await self.sender.send(to, bundle, now, person)
        except Exception:
            log.exception("a message to an address of %s failed", person)
            return "It could not be sent: see the scheduler's log."

    async def _remember(self, person: str, messages: Mapping[str, Message]) -> None:
        now, record = self.now(), self.kept.record
        lasting = {conditions.id_of(name, since) for name, since in record.since.items()}
        delivered = {
            who: {id_: at for id_, at in ids.items() if at > now - REMEMBERED_S or id_ in lasting}
            for who, ids in record.told.items()
        }
        delivered.setdefault(person, {}).update(dict.fromkeys(messages, now))
        sent = {who: pace.kept(at, now) for who, at in record.sent.items()}
        self.kept.record = replace(record, told=delivered, sent=sent)
        try:
            await self.kept.save_record()
        except OSError as failed:
            log.warning("the delivery record cannot be saved: %s", failed.strerror)

    def bundle(self, messages: Iterable[Message]) -> Bundle:
        """Return the messages as one bundle."""
        return bundled(list(messages), self._observed.settings.base_url)

    def _addresses(self, person: str) -> Sequence[KeptAddress]:
        if person == POOL:
            return [KeptAddress(f"pool-{at}", url) for at, url in enumerate(self.site.pool)]
        return self.kept.subscriptions[person].addresses


def _with_results(
    own: Subscription | None, came: Mapping[str, str | None], now: float
) -> Subscription | None:
    if own is None:
        return None
    after: list[KeptAddress] = []
    for one in own.addresses:
        why = came.get(one.id)
        if one.id in came and why is None:
            after.append(replace(one, failed=None, reached=now))
        else:
            after.append(replace(one, failed=why or one.failed))
    return replace(own, addresses=tuple(after))
