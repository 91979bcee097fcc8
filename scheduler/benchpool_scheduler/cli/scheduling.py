"""``benchpool submit --every``: repeats the same submission at set times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import option
from benchpool_scheduler.client import schedule_requests
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.schedules import ScheduleRequest
from benchpool_scheduler.schedules.cron_times import FORMS

PARAMS: Sequence[click.Parameter] = (
    option("--every", metavar="WHEN",
           help=f"Send it repeatedly: {FORMS}. Skipped while the previous job has not ended."),
    option("--zone", metavar="ZONE",
           help="With --every: time zone, such as Europe/Berlin; by default that of this machine."),
)  # fmt: skip


def check_alone(options: Mapping[str, Any]) -> None:
    """Refuse options that conflict with a schedule. Errors: InvalidInput."""
    others = [name for name in ("sweep", "array", "wait", "after") if options[name]]
    schedule_requests.check_alone(options["every"], options["zone"], others)


def request_of(submission: JobSubmission, options: Mapping[str, Any]) -> ScheduleRequest:
    """Return the schedule that the options describe."""
    return schedule_requests.request_of(submission, options["every"], options["zone"])


def begin(session: Session, request: ScheduleRequest) -> int:
    """Create a schedule and print when it will submit jobs."""
    one = session.client.begin_schedule(request)
    if session.screen.json:
        session.screen.value(one)
        return 0
    id_ = words.short(one.id)
    session.screen.heading(f"{id_} {words.clean(one.name)}, project {one.project}")
    session.screen.line(words.clean(one.text))
    session.screen.line(f"next: {one.next_text}")
    session.screen.line(
        f"Show it: benchpool schedule {id_}; stop it: benchpool pause-schedule {id_} or "
        f"remove-schedule {id_}"
    )
    return 0
