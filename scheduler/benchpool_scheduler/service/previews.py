"""What would happen to a job if it were submitted now: a pass over the pool and that job."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from benchpool_scheduler import contract
from benchpool_scheduler.core.model import JobId, Plan, ReasonCode, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.service import reasons, snapshots
from benchpool_scheduler.service.caller import Caller
from benchpool_scheduler.service.intake import Intake
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.store.records import JobRecord

Starts = Literal["now", "after-reclaim", "waits", "never"]

_NEVER = frozenset(
    {ReasonCode.LARGER_THAN_NODE, ReasonCode.LARGER_THAN_POOL, ReasonCode.NO_SUCH_MODEL}
)


class Previews:
    """Answers the dialog before anything is sent."""

    def __init__(self, ledger: Ledger, site: Site, intake: Intake) -> None:
        self._ledger = ledger
        self._site = site
        self._intake = intake

    def preview(self, caller: Caller, submission: contract.JobSubmission) -> contract.Preview:
        """Say what would happen. Errors: those of a submission, except missing contents."""
        record = self._intake.checked(caller, submission)
        now = snapshots.snapshot(self._ledger, self._site, self._site.clock.now())
        plan = decide(replace(now, jobs=(*now.jobs, snapshots.candidate(record))))
        starts = _starts(plan, record)
        within = min(record.total_gpus, self._room_in_quota(record))
        over = record.total_gpus - within
        reason = plan.reasons.get(JobId(record.id))
        shown = None if reason is None or starts == "now" else reasons.from_core(reason)
        return contract.Preview(
            project=record.project,
            gpus=record.total_gpus,
            within_quota=within,
            over_quota=over,
            starts=starts,
            text=self._text(starts, within, over, shown),
            reason=shown,
            estimated_start=None,
        )

    def _room_in_quota(self, record: JobRecord) -> int:
        """Return how many GPUs of the guaranteed quota no other job of the project holds."""
        settings = self._site.configuration.project(record.project)
        quota = 0 if settings is None else settings.project.quota
        if quota is None:
            return record.total_gpus
        held = 0
        for job in self._ledger.live():
            attempt = self._ledger.attempt(job.id, job.attempt)
            if job.project == record.project and attempt is not None:
                held += sum(len(worker.gpus) for worker in attempt.live_workers)
        return max(0, quota - held)

    def _text(self, starts: Starts, within: int, over: int, reason: contract.Reason | None) -> str:
        grace = f"{self._site.configuration.policy.grace_s:g} s"
        when = {
            "now": "Starts now",
            "after-reclaim": f"Starts within {grace}, when others have given back GPUs",
            "waits": "Waits" if reason is None else f"Waits: {reason.text.rstrip('.')}",
            "never": "Can never run" if reason is None else reason.text.rstrip("."),
        }[starts]
        if starts == "never":
            return f"{when}."
        if not over:
            return f"{when}; {_gpus(within)} within the guaranteed quota."
        inside = f"{_gpus(within)} within quota, {over} over it" if within else "over quota"
        return f"{when}; {inside}: may be paused for others, then resumes by itself."


def _starts(plan: Plan, record: JobRecord) -> Starts:
    for command in plan.commands:
        if isinstance(command, Start) and command.job == record.id:
            return "after-reclaim" if command.after else "now"
    reason = plan.reasons.get(JobId(record.id))
    return "never" if reason is not None and reason.code in _NEVER else "waits"


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"
