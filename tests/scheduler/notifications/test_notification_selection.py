"""Selection, recipients and bundles of notifications, without a clock."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from benchpool_scheduler.contract.notifications import NotificationEvent as Event
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.notifications import conditions, events, job_messages
from benchpool_scheduler.notifications.bundle import MOST_LINES, bundled
from benchpool_scheduler.notifications.delivery_state import Subscription
from benchpool_scheduler.notifications.events import Message
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.store.records import JobRecord, Note, PreemptionRecord
from benchpool_support.job_records import T, job

HOUR = 3600.0
SUBSCRIPTION = Subscription("susan", T - HOUR, events.usual(admin=False))


def texts(
    record: JobRecord,
    now: float = T + 10 * HOUR,
    pause: PreemptionRecord | None = None,
    **choices: Any,
) -> list[str]:
    return [
        it.text for it in job_messages.of_job(record, pause, replace(SUBSCRIPTION, **choices), now)
    ]


def paused(**more: Any) -> PreemptionRecord:
    facts = {"claimant": None, "for_": "vision", "rule": "R15", "lost_gpu_s": 0.0, "gpus": 1}
    return PreemptionRecord("j", 1, T + HOUR, **(facts | {"ended": T + HOUR + 20} | more))


def test_event_table_is_complete_and_gpu_events_require_administrator() -> None:
    assert set(events.EVENTS) == set(Event)
    hidden = set(events.offered(admin=True)) - set(events.offered(admin=False))
    assert hidden == {Event.GPU_BROKEN}


def test_start_is_notified_only_after_long_wait() -> None:
    late = job(name="train", id="k" * 26, state=JobState.RUNNING, started=T + 2 * HOUR, attempt=1)
    assert texts(late) == ["Job train (kkkkkkkk) started after 2 h in the queue."]
    assert texts(replace(late, started=T + 60)) == []
    assert texts(replace(late, started=T + 60), wait_s=0) != []
    assert texts(late, events=(Event.FAILED,)) == []


def test_subscription_before_clock_change_hides_nothing() -> None:
    ended = job(name="train", id="k" * 26, state=JobState.SUCCEEDED, ended=T, attempt=1)
    assert texts(ended, now=T + 60, since=T + 30) == []
    assert texts(ended, now=T + 60, since=T + HOUR) == ["Job train (kkkkkkkk) succeeded."]


@pytest.mark.parametrize(
    ("state", "note", "text"),
    [
        (JobState.SUCCEEDED, None, "succeeded, 1 h after its start."),
        (JobState.FAILED, Note("exit-code", "train ended with 3."), "failed. train ended with 3."),
        (
            JobState.CANCELLED,
            Note("x", "Cancelled by ada.", numbers={"by": "ada"}),
            "was cancelled. Cancelled by ada.",
        ),
    ],
)
def test_end_is_notified_with_reason(state: JobState, note: Note | None, text: str) -> None:
    over = job(id="k" * 26, state=state, started=T, ended=T + HOUR, attempt=1, note=note)
    assert texts(over) == [f"Job train (kkkkkkkk) {text}"]


def test_own_actions_are_not_notified() -> None:
    by_me = Note("x", "Cancelled by susan.", numbers={"by": "susan"})
    assert texts(job(state=JobState.CANCELLED, ended=T + 60, note=by_me)) == []
    stopped = job(state=JobState.PAUSED, started=T, attempt=1)
    assert texts(stopped, pause=paused(by="susan")) == []
    after_others = replace(stopped, note=Note("x", "Paused by susan.", numbers={"by": "susan"}))
    assert texts(after_others, pause=paused()) == []


def test_pause_is_notified_after_delay_unless_resumed() -> None:
    waits = job(id="k" * 26, started=T, attempt=1)
    soon, late = T + HOUR + 20 + 29 * 60, T + HOUR + 20 + 31 * 60
    assert job_messages.waits_for_time(waits)
    assert texts(waits, soon, paused()) == []
    assert texts(waits, late, paused()) == [
        "Job train (kkkkkkkk) has been paused for more than 30 min, to make room for vision."
    ]
    assert texts(waits, late, paused(resumed_at=late - 5)) == []
    by_ada = texts(replace(waits, state=JobState.PAUSED), late, paused(by="ada", said="new disk."))
    assert by_ada[0].endswith("30 min, by ada: new disk.")


def test_events_before_subscription_or_long_past_are_not_notified() -> None:
    over = job(state=JobState.SUCCEEDED, started=T, ended=T + HOUR, attempt=1)
    assert texts(over, since=T + 2 * HOUR) == []
    assert texts(over, now=T + 30 * HOUR) == []


def test_same_facts_give_same_ids() -> None:
    over = job(state=JobState.FAILED, started=T + HOUR, ended=T + 2 * HOUR, attempt=1)
    first, second = (
        [it.id for it in job_messages.of_job(over, None, SUBSCRIPTION, now)]
        for now in (T + 2 * HOUR, T + 9 * HOUR)
    )
    assert first == second == [f"{over.id}-started", f"{over.id}-failed"]


def test_condition_is_notified_once_per_occurrence() -> None:
    broken = Device(
        "g", 1, "H200", "n", None, simulated=False, state=DeviceState.BROKEN, note="XID"
    )
    used = Device("f", 2, "H200", "n", None, simulated=False, state=DeviceState.FOREIGN)
    (one,) = conditions.of_gpus([broken, used])
    assert one.text == "GPU 1 of n is broken: XID."
    since = conditions.lasting([one], {}, 5.0)
    again = conditions.lasting([one], conditions.lasting([], since, 6.0), 9.0)
    assert conditions.lasting([one], since, 7.0) == since
    assert conditions.message(one, since[one.name]).id != conditions.message(one, 9.0).id
    assert again == {one.name: 9.0}


def test_many_messages_are_bundled_with_count_of_omitted() -> None:
    many = [Message(f"m{at}", Event.ENDED, at, f"Job {at} ended.", "jobs/x") for at in range(50)]
    bundle = bundled(many, "https://hub.example.org/services/benchpool/")
    assert bundle.subject == "benchpool: 50 messages"
    assert bundle.text.count("\n\n") == MOST_LINES
    assert bundle.text.endswith(
        "And 20 further messages: https://hub.example.org/services/benchpool/jobs"
    )
    assert len(json.loads(bundle.json)["messages"]) == 50
    assert bundled(list(reversed(many)), "").id == bundle.id


def test_job_name_cannot_add_lines_or_hidden_characters() -> None:
    bundle = bundled([Message("m", Event.ENDED, 1.0, "Job a\r\nBcc: x@y\u202eb ended.")], "/here")
    assert "\n" not in bundle.subject + bundle.text
    assert "\u202e" not in bundle.text
    assert "http" not in bundle.text
