"""The latest preemptions with their costs, as far as these are known."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord, PreemptionRecord

DAYS_S = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class PreemptionCost:
    """Cost of one preemption.

    Attributes:
        at: Epoch seconds.
        job, name, user, project: The paused job.
        to_job, to_user, to_project: The job that got the GPUs; empty for benches.
        lost_gpu_s: Cost in GPU-seconds; ``final`` if it no longer grows.
        resumed_on: Node on which the job resumed; empty while it waits.
    """

    at: float
    job: str
    name: str
    user: str
    project: str
    rule: str
    gpus: int
    to_job: str
    to_user: str
    to_project: str
    lost_gpu_s: float
    final: bool
    resumed_on: str


def newest(
    ledger: Ledger, caller: Caller, now: float, at_most: int
) -> tuple[Sequence[PreemptionCost], int]:
    """Return the newest preemptions of the last 7 days, and their total number.

    Errors: Forbidden for non-administrators.
    """
    rights.require_admin(caller, "see all preemptions")
    found = list(ledger.preemptions_since(now - DAYS_S))
    chosen = heapq.nlargest(at_most, found, key=lambda it: it.at)
    rows = [
        _paid(one, victim, None if one.claimant is None else ledger.job(one.claimant))
        for one in chosen
        if (victim := ledger.job(one.job)) is not None
    ]
    return rows, len(found)


def _paid(one: PreemptionRecord, victim: JobRecord, claimant: JobRecord | None) -> PreemptionCost:
    return PreemptionCost(
        at=one.at,
        job=victim.id,
        name=victim.name,
        user=victim.user,
        project=victim.project,
        rule=one.rule,
        gpus=one.gpus,
        to_job="" if claimant is None else claimant.id,
        to_user="" if claimant is None else claimant.user,
        to_project="" if claimant is None else claimant.project,
        lost_gpu_s=one.cost_gpu_s,
        final=one.unsaved_gpu_s is not None and one.restart_gpu_s is not None,
        resumed_on="" if one.resumed_at is None else one.resumed_on or "",
    )
