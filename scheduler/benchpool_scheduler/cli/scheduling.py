"""``benchpool submit --every``: repeats the same submission at set times."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import option
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.schedules import ScheduleRequest
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.schedules.cron_times import FORMS

PARAMS: Sequence[click.Parameter] = (
    option("--every", metavar="WHEN",
           help=f"Send it repeatedly: {FORMS}. Skipped while the previous job has not ended."),
    option("--zone", metavar="ZONE",
           help="With --every: time zone, such as Europe/Berlin; by default that of this machine."),
)  # fmt: skip

_LOCALTIME = Path("/etc/localtime")


def check_alone(options: Mapping[str, Any]) -> None:
    """Refuse options that conflict with a schedule. Errors: InvalidInput."""
    if options["zone"] and not options["every"]:
        raise InvalidInput("--zone needs --every WHEN.", field="zone")
    others = [name for name in ("sweep", "array", "wait", "after") if options[name]]
    if options["every"] and others:
        raise InvalidInput(f"--{others[0]} cannot be combined with --every.", field="every")


def request_of(submission: JobSubmission, options: Mapping[str, Any]) -> ScheduleRequest:
    """Return the schedule that the options describe."""
    zone = options["zone"] or own_zone()
    return ScheduleRequest(submission, options["every"], zone, submission.name, submission.key)


def own_zone() -> str:
    """Return the name of this machine's time zone, or UTC if it has none."""
    named = os.environ.get("TZ", "").lstrip(":")
    if named and not named.startswith("/"):
        return named
    _, found, zone = str(_LOCALTIME.resolve()).partition("zoneinfo/")
    return zone if found else "UTC"


def begin(session: Session, request: ScheduleRequest) -> int:
    """Create a schedule and print when it will submit jobs."""
    one = session.client.begin_schedule(request)
    if session.screen.json:
        session.screen.value(one)
        return 0
    id_ = words.short(one.id)
    session.screen.heading(f"{id_} {words.clean(one.name)}, project {one.project}")
    session.screen.line(words.clean(one.text))
    session.screen.line("next: " + ", ".join(f"{at:%a %d %b %H:%M}" for at in one.next))
    session.screen.line(
        f"Show it: benchpool schedule {id_}; stop it: benchpool pause-schedule {id_} or "
        f"remove-schedule {id_}"
    )
    return 0
