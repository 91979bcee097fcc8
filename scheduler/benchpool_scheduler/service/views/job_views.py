"""Translation of records into the API's types."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial
from typing import get_args

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.accounting import job_notes
from benchpool_scheduler.contract.deadlines import DeadlineStanding
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, JobState
from benchpool_scheduler.core.model import JobId
from benchpool_scheduler.curves.views import NewestMetrics
from benchpool_scheduler.phrases import visible, visible_value
from benchpool_scheduler.runtime import Part
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.cluster_state import retry_bars
from benchpool_scheduler.service.cluster_state.node_bars import node_bars, room_bar
from benchpool_scheduler.service.execution import containers
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import (
    job_actions,
    job_reasons,
    notices,
    pauses,
    retry_words,
)
from benchpool_scheduler.service.lifecycle.reservation_words import with_reservations
from benchpool_scheduler.service.observed.inventory import Inventory
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views import awaited_jobs, deadlines, pause_views, undelivered
from benchpool_scheduler.service.views.estimates import Estimates
from benchpool_scheduler.service.views.job_progress import progress_of, tracker_runs_of
from benchpool_scheduler.service.views.renderings import EVERYTHING, Renderings, Sees
from benchpool_scheduler.store.records import (
    AttemptRecord,
    JobRecord,
    PreemptionRecord,
)


def _moment(at: float | None) -> datetime | None:
    return None if at is None else moment(at)


SPEC_FIELDS = tuple(
    name
    for name in contract.JobSpec.__struct_fields__
    if name in contract.Job.__struct_fields__ and name != "min_workers"
)
"""Fields of a job's request that all its readers see, as they were requested."""

DAY_S = 24 * 3600.0
MIB = 1024
"""MiB in a GiB."""

PARTS: tuple[Part, ...] = get_args(Part)

GOOD_S = 1.0
"""Maximum age of renderings, in seconds, since estimates count from the present time."""


class JobViews:
    """Jobs in the form of the API.

    Args:
        newest: Returns the newest values that a job has reported, the same object until its next
            report.
        trial: Returns the trial of a sweep that a job runs, or None.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        estimates: Estimates,
        newest: Callable[[str], NewestMetrics | None],
        trial: Callable[[str], contract.TrialPlace | None],
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._estimates = estimates
        self._newest, self._trial = newest, trial
        self._renderings = Renderings()
        self._rendered_at = 0.0

    def job(self, record: JobRecord, reader: Caller | None) -> contract.Job:
        """Return a job as its reader may see it. None stands for any reader of the job."""
        return self._job(record, partial(self._sees, reader))

    def reason_code(self, record: JobRecord, reader: Caller) -> str | None:
        """Return only the code of a job's reason, for lists, or None."""
        reason = self._reason(record, partial(self._sees, reader))
        return None if reason is None else reason.code

    def encoded(self, record: JobRecord, reader: Caller) -> bytes:
        """Return the same as JSON, rendered once for all readers to whom it is equal."""
        now = self._observed.settings.clock.now()
        if not 0 <= now - self._rendered_at < GOOD_S:
            self._renderings, self._rendered_at = Renderings(), now
        facts = (
            record,
            self._observed.now.latest_pass,
            self._estimates.newest,
            self._observed.now.safe_mode,
            self._newest(record.id),
            self._trial(record.id),
            *self._ledger.pauses(record.id),
            *self._ledger.attempts(record.id),
            *awaited_jobs.facts_of(self._ledger, record),
        )
        return self._renderings.of(
            record.id,
            facts,
            partial(self._sees, reader),
            lambda sees: msgspec.json.encode(self._job(record, sees)),
        )

    def _job(self, record: JobRecord, sees: Sees) -> contract.Job:
        latest_pass = self._observed.now.latest_pass
        over = JobId(record.id) in latest_pass.over_quota and record.state in HOLDS_GPUS
        newest = self._newest(record.id) if record.live else None
        return contract.Job(
            id=record.id,
            name=visible(record.name),
            project=record.project,
            user=record.user,
            state=contract.State(record.state.value),
            reason=self._reason(record, sees),
            min_workers=record.spec.least_workers,
            over_quota=over,
            attempt=record.attempt,
            submitted=moment(record.submitted),
            started=_moment(record.started),
            ended=_moment(record.ended),
            exit_code=record.exit_code,
            progress=progress_of(record),
            estimated_start=self._estimate(record),
            preemptions=[
                pause_views.pause_of(it, self._for_whom(it, sees))
                for it in self._ledger.preemptions(record.id)
            ],
            url=f"{self._observed.settings.base_url.rstrip('/')}/jobs/{record.id}",
            # Asked only if it matters; otherwise administrators and others share the same bytes.
            actions=job_actions.actions_of(
                record, lifts=not pauses.is_held(record) or sees(EVERYTHING)
            ),
            awaits=awaited_jobs.listed(self._ledger, record, sees),
            in_line_since=None if record.gated else moment(record.in_line_since),
            pause=pause_views.moment_of(
                record,
                self._ledger.attempt(record.id, record.attempt),
                self._ledger.pauses(record.id),
                partial(self._for_whom, sees=sees),
            ),
            note=visible(record.remark),
            metrics={} if newest is None else newest.values,
            metrics_updated=None if newest is None else moment(newest.at),
            parameters=visible_value(record.parameters),
            trial=self._trial(record.id),
            tracker_runs=tracker_runs_of(record),
            deadline_standing=self._deadline(record),
            **{name: getattr(record.spec, name) for name in SPEC_FIELDS},
        )

    def detail(self, record: JobRecord, reader: Caller) -> contract.JobDetail:
        """Return a job with its attempts and pauses."""
        return contract.JobDetail(
            job=self.job(record, reader),
            attempts=self.attempts(record),
            container=self._container(record),
            fixed=job_actions.fixed_of(record),
            kept=self._kept(record),
            pauses=[
                pause_views.pause_of(it, self._for_whom(it, partial(self._sees, reader)))
                for it in self._ledger.pauses(record.id)
            ],
            usage=self.usage(record) if record.attempt else None,
            retried=retry_words.history(record.retried, over=record.ended is not None),
        )

    def _nodes(self) -> Collection[str]:
        return self._observed.now.inventory.train

    def usage(self, record: JobRecord) -> contract.JobUsage | None:
        """Return the usage note of a job that has ended, else None."""
        if record.ended is None:
            return None
        if record.measured is None:
            return job_notes.unmeasured(record.id)
        finished = job_notes.FinishedJob(
            short_id=record.id[:8],
            failed=record.state is JobState.FAILED,
            spec=record.spec,
            measured=record.measured,
            pool=_sizes(self._observed.now.inventory),
        )
        return job_notes.note(finished, record.id)

    def _kept(self, record: JobRecord) -> contract.Kept | None:
        if record.ended is None:
            return None
        keep, ended = self._observed.now.configuration.retention, record.ended
        return contract.Kept(
            job=moment(ended + keep.ended_days * DAY_S),
            **{part: moment(ended + keep.days_of(part) * DAY_S) for part in PARTS},
        )

    def attempts(self, record: JobRecord) -> list[contract.Attempt]:
        """Return the attempts of a job, oldest first."""
        return [_attempt(attempt) for attempt in self._ledger.attempts(record.id)]

    def _container(self, record: JobRecord) -> contract.Container | None:
        if self._observed.settings.containers is None:
            return None
        attempts = self._ledger.attempts(record.id)
        last = attempts[-1] if attempts else None
        submission = self._ledger.submission(record.id)
        return containers.describe(
            self._observed.settings, record.user, submission, record.spec, last
        )

    def why(self, record: JobRecord, reader: Caller) -> contract.Why:
        """Return why a job waits and what would make it start (R22)."""
        reason = self._reason(record, partial(self._sees, reader))
        waits = record.state is JobState.QUEUED
        return contract.Why(
            job=record.id,
            reason=reason,
            estimated_start=self._estimate(record),
            would_start_with=reason.remedy if waits and reason is not None else None,
            deadline=self._deadline(record),
        )

    def _for_whom(self, it: PreemptionRecord, sees: Sees) -> str:
        """Return the claimant of a pause; only its project, if the reader may not see the job."""
        claimant = None if it.claimant is None else self._ledger.job(it.claimant)
        if it.claimant is None:
            return it.for_
        if claimant is None:  # removed meanwhile
            return it.for_.partition("/")[0]
        named = sees(claimant.id)
        return f"{claimant.project}/{claimant.name}" if named else claimant.project

    def _sees(self, reader: Caller | None, job: str) -> bool:
        """Return whether the reader may see another job; for EVERYTHING, whether it is an admin."""
        if job == EVERYTHING:
            return reader is not None and rights.may_lift(reader)
        other = self._ledger.job(job)
        if reader is None or other is None:
            return False
        return rights.may_use(reader, other, self._observed.now.configuration)

    def _held(self, record: JobRecord) -> contract.Reason | None:
        """Return why passes leave out a waiting job, regardless of its earlier reason, or None."""
        if record.state is not JobState.QUEUED:
            return None
        safe_mode = self._observed.now.safe_mode
        attempt = safe_mode.held_jobs.get(record.id)
        if attempt is not None:
            return notices.runs_unrecorded(record.id, attempt)
        because = safe_mode.held_because
        return None if because is None else notices.held(because)

    def _estimate(self, record: JobRecord) -> contract.EstimatedStart | None:
        """Return the estimated start of a waiting job, or None if an administrator must decide."""
        return None if self._held(record) else self._estimates.of(record)

    def _deadline(self, record: JobRecord) -> DeadlineStanding | None:
        """Return a job's outlook on its deadline, or None."""
        if record.spec.deadline is None:
            return None
        now = self._observed.settings.clock.now()
        return deadlines.standing(self._ledger, record, self._estimate(record), now)

    def _reason(self, record: JobRecord, sees: Sees) -> contract.Reason | None:
        held = self._held(record)
        if held is not None:
            return held
        if record.state is JobState.SUCCEEDED and record.note is None:
            return undelivered.reason(record.id, self._ledger.attempts(record.id))
        if record.gated and record.state is JobState.QUEUED:
            return awaited_jobs.reason(self._ledger, record, sees)
        latest_pass = self._observed.now.latest_pass
        quarantined = latest_pass.quarantined.get(record.id)
        if quarantined is not None and record.state is JobState.QUEUED:
            return notices.set_aside(quarantined)
        decided = latest_pass.reasons.get(JobId(record.id))
        other = None if decided is None else decided.other
        named = other is not None and sees(other.job)
        reason = job_reasons.of_job(record, decided, named=named)
        if reason is not None and record.state is JobState.QUEUED:
            now = self._observed.settings.clock.now()
            attempts = self._ledger.attempts(record.id) if record.attempt else ()
            full = room_bar(attempts)
            if full is not None and full.until > now:
                return notices.no_room(reason, full.text, full.length_s)
            if record.retried and record.retried[-1].next_at > now:
                return retry_words.tries_again(reason, record.retried[-1])
            for retry in retry_bars.avoiding(record.retried, self._nodes(), now):
                reason = retry_words.keeps_off(reason, retry)
            for bar in node_bars(attempts):
                if bar.until > now:
                    reason = notices.kept_off(reason, bar.node, bar.attempt, bar.text, bar.length_s)
        if reason is not None and record.state is JobState.QUEUED:
            configuration, now = (
                self._observed.now.configuration,
                self._observed.settings.clock.now(),
            )
            reason = with_reservations(reason, record.project, configuration, now)
        awaited = self._estimates.waits_for(record, sees)
        if reason is None or awaited is None:
            return reason
        remedy = f"{reason.remedy} {job_reasons.sentence(awaited)}"
        return msgspec.structs.replace(reason, remedy=remedy)


def _sizes(inventory: Inventory) -> job_notes.PoolSizes:
    """Return the sizes that a job may request, from the nodes that serve training."""
    facts = [inventory.facts.get(name) for name in inventory.train]
    cpus = [it.cpus for it in facts if it is not None and it.cpus is not None]
    memory = [it.memory_gib for it in facts if it is not None and it.memory_gib is not None]
    models = {
        it.model: it.memory_mib / MIB
        for name in inventory.train
        for it in inventory.nodes.get(name, ())
        if it.memory_mib is not None
    }
    most = max(memory, default=None)
    return job_notes.PoolSizes(max(cpus, default=None), most, inventory.largest_train_node, models)


def _attempt(record: AttemptRecord) -> contract.Attempt:
    return contract.Attempt(
        attempt=record.attempt,
        started=_moment(record.started),
        ended=_moment(record.ended),
        exit_code=record.exit_code,
        ended_by=record.ended_by,
        gpus=[gpu for worker in record.workers for gpu in worker.gpus],
        nodes=[worker.node for worker in record.workers],
    )
