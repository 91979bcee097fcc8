"""Sweep or schedule of the dialog's request: many runs of what is sent instead of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from msgspec import structs

from benchpool.drafts import Draft
from benchpool.server import schedule_requests, several_values, sweep_requests
from benchpool.server.pool_access import PoolAccess
from benchpool.server.requests import SendRequest
from benchpool.server.sweep_requests import DialogSweep
from benchpool_scheduler.client.notebooks import NotebookParameter
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.schedules import SchedulePreview, ScheduleRequest
from benchpool_scheduler.contract.sweeps import SweepPreview, SweepRequest
from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class RepeatedPreview:
    """Trials and cost of a sweep, or the next times of a schedule."""

    sweep: SweepPreview | None = None
    schedule: SchedulePreview | None = None


def with_sweep_over(request: SendRequest, parameters: Sequence[NotebookParameter]) -> SendRequest:
    """Return the request with several values of a parameter in its sweep.

    Errors: InvalidInput with the field of the parameter.
    """
    single, several = several_values.split(request.parameters, parameters)
    sweep = (request.sweep or DialogSweep()).joined(several) if several else request.sweep
    return structs.replace(request, parameters=single, sweep=sweep)


def sweep_of(request: SendRequest, draft: Draft) -> SweepRequest | None:
    """Return the sweep of a draft, or None for one run. Errors: InvalidInput."""
    sweep = request.sweep
    if sweep is None or not sweep.has_runs:
        return None
    return sweep_requests.request_of(sweep, draft)


def schedule_of(request: SendRequest, draft: Draft) -> ScheduleRequest | None:
    """Return the schedule of a draft, or None without times. Errors: InvalidInput for a sweep."""
    if request.schedule is None:
        return None
    if request.sweep is not None and request.sweep.has_runs:
        raise InvalidInput(
            "A sweep or an array cannot be sent at set times. Remove its values, or the times.",
            field="when",
        )
    return schedule_requests.request_of(request.schedule, draft)


async def preview(
    pool: PoolAccess, request: SendRequest, draft: Draft, submission: JobSubmission, wait_s: float
) -> RepeatedPreview:
    """Return the pool's preview of a sweep or a schedule of ``submission``; both None for one job.

    Errors: InvalidInput, and those of the pool, which answers within ``wait_s`` seconds.
    """
    swept, times = sweep_of(request, draft), schedule_of(request, draft)
    if swept is not None:
        sweep = structs.replace(swept, submission=submission)
        return RepeatedPreview(await pool.ask(lambda one: one.preview_sweep(sweep), wait_s))
    if times is not None:
        schedule = structs.replace(times, submission=submission)
        shown = await pool.ask(lambda one: one.preview_schedule(schedule), wait_s)
        return RepeatedPreview(schedule=shown)
    return RepeatedPreview()


def words_of(request: SendRequest) -> list[str]:
    """Return the options of ``benchpool submit`` and ``%%train`` for sweep and schedule."""
    sweep, schedule = request.sweep, request.schedule
    words = sweep_requests.words_of(sweep) if sweep is not None and sweep.has_runs else []
    return words + (schedule_requests.words_of(schedule) if schedule is not None else [])
