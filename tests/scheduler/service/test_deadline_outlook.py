"""Outlook of deadlines: shown at submission and notified when it changes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.deadlines import DeadlineOutlook
from benchpool_scheduler.contract.notifications import NotificationEvent
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.notifications import events, job_messages
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.jobs.deadline_watch import DeadlineWatch
from benchpool_support.lab import Lab, estimated
from benchpool_support.pools import SUSAN, opened, reached, sleeper

HOUR = 3600.0


def ahead(lab: Lab, hours: float) -> datetime:
    return datetime.fromtimestamp(lab.clock.now() + hours * HOUR, UTC)


def state_of(job: Job) -> DeadlineOutlook:
    assert job.deadline_standing is not None
    return job.deadline_standing.state


async def learned(lab: Lab, hours: float) -> None:
    """Let the pool learn run times from four jobs, which is enough."""
    for _ in range(4):
        await lab.run(SUSAN, sleeper(), hours * HOUR)


def messages(pool: Pool, job: str, now: float) -> list[str]:
    """Return the notifications to the owner about a job's deadline."""
    record = pool.ledger.job(job)
    assert record is not None
    subscription = Subscription(SUSAN.name, 0.0, events.usual(admin=False))
    found = job_messages.of_job(record, None, subscription, now)
    return [it.text for it in found if it.event is NotificationEvent.DEADLINE]


async def test_preview_shows_deadline_outlook(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        unknown = await pool.jobs.preview(SUSAN, sleeper(deadline=ahead(lab, 3)))
        await learned(lab, 1)
        met = await pool.jobs.preview(SUSAN, sleeper(deadline=ahead(lab, 3)))
        late = await pool.jobs.preview(SUSAN, sleeper(deadline=ahead(lab, 0.5)))
        limited = await pool.jobs.preview(SUSAN, sleeper())
    found = [None if it.deadline is None else it.deadline.state for it in (unknown, met, late)]
    assert found == [
        DeadlineOutlook.CANNOT_BE_TOLD,
        DeadlineOutlook.WILL_BE_MET,
        DeadlineOutlook.WILL_BE_MISSED,
    ]
    assert "its run time is not known" in unknown.text
    assert met.text.endswith("before its deadline: learned from 4 runs.")
    assert "after its deadline" in late.text
    assert limited.deadline is None
    assert "deadline" not in limited.text


async def test_missed_deadline_notifies_owner_once(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        watch = DeadlineWatch(pool.ledger, pool.observed, pool.estimates)
        await learned(lab, 1)
        running = await lab.start(SUSAN, sleeper(deadline=ahead(lab, 1.5)))
        await watch.look()
        now = pool.jobs.detail(SUSAN, running.id).job
        assert state_of(now) is DeadlineOutlook.WILL_BE_MET
        assert messages(pool, running.id, lab.clock.now()) == []

        lab.clock.pass_s(1.6 * HOUR)  # it runs longer than all earlier jobs
        await watch.look()
        first = messages(pool, running.id, lab.clock.now())
        assert first == [f"Job sleep ({running.id[:8]}) did not end by its deadline."]
        record = pool.ledger.job(running.id)
        lab.clock.pass_s(600)
        await watch.look()
        assert pool.ledger.job(running.id) is record
        assert state_of(pool.jobs.detail(SUSAN, running.id).job) is DeadlineOutlook.MISSED
        why = pool.jobs.why(SUSAN, running.id)
        assert why.deadline is not None
        assert why.deadline.state is DeadlineOutlook.MISSED


async def test_queued_job_warns_owner_before_deadline(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        watch = DeadlineWatch(pool.ledger, pool.observed, pool.estimates)
        await learned(lab, 1)
        await lab.start(SUSAN, sleeper())
        sent = await pool.jobs.submit(SUSAN, sleeper(deadline=ahead(lab, 1.2)))
        await estimated(pool, sent.id)
        lab.clock.pass_s(0.5 * HOUR)
        await watch.look()
        assert state_of(pool.jobs.detail(SUSAN, sent.id).job) is DeadlineOutlook.WILL_BE_MISSED
        texts = messages(pool, sent.id, lab.clock.now())
        assert texts == [f"Job sleep ({sent.id[:8]}) is expected to miss its deadline."]


async def test_deadline_outlook_survives_restart(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        sent = await lab.start(SUSAN, sleeper(deadline=ahead(lab, 1)))
        lab.clock.pass_s(2 * HOUR)
        await DeadlineWatch(pool.ledger, pool.observed, pool.estimates).look()
        found = pool.ledger.job(sent.id)
    async with opened(lab.new()) as pool:
        again = pool.ledger.job(sent.id)
        assert found is not None
        assert again is not None
        assert again.late_since == found.late_since is not None


async def test_deadline_keeps_queue_order(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        first = await lab.start(SUSAN, sleeper())
        older = await pool.jobs.submit(SUSAN, sleeper())
        urgent = await pool.jobs.submit(SUSAN, sleeper(deadline=ahead(lab, 0.1)))
        lab.end(first)
        await lab.begun(older.id)
        assert pool.jobs.detail(SUSAN, urgent.id).job.state is State.QUEUED


async def test_job_ended_in_time_meets_deadline(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        job = await lab.run(SUSAN, sleeper(deadline=ahead(lab, 2)), HOUR)
        assert job.deadline_standing is not None
        assert job.deadline_standing.text == "It ended 1 h before its deadline."
        cancelled = await lab.start(SUSAN, sleeper(deadline=ahead(lab, 2)))
        await pool.jobs.act(SUSAN, cancelled.id, "cancel")
        lab.end(cancelled, 1)
        ended = await reached(pool, cancelled.id, State.CANCELLED)
        assert ended.deadline_standing is None


async def test_passed_deadline_is_refused(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    async with opened(lab.pool) as pool:
        for ask in (pool.jobs.preview, pool.jobs.submit):
            with pytest.raises(InvalidInput, match=r"passed 1 h ago: give a later one"):
                await ask(SUSAN, sleeper(deadline=ahead(lab, -1)))
        # A repeat of a submission accepted in time returns the first job.
        key = {"key": "k", "deadline": ahead(lab, 1)}
        sent = await pool.jobs.submit(SUSAN, sleeper(**key))
        lab.clock.pass_s(2 * HOUR)
        assert (await pool.jobs.submit(SUSAN, sleeper(**key))).id == sent.id
