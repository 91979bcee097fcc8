"""What would happen to a job if it were submitted now: a pass over the pool and that job."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.core.preview import Starts, preview
from benchpool_scheduler.service import reasons, snapshots
from benchpool_scheduler.service.caller import Caller
from benchpool_scheduler.service.intake import Intake
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.site import Site


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
        found = preview(now, snapshots.candidate(record))
        reason = None if found.reason is None else reasons.from_core(found.reason)
        return contract.Preview(
            project=record.project,
            gpus=record.total_gpus,
            within_quota=found.within_quota,
            over_quota=found.over_quota,
            starts=found.starts,
            text=self._text(found.starts, found.within_quota, found.over_quota, reason),
            reason=None if found.starts == "now" else reason,
            estimated_start=None,
        )

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


def _gpus(count: int) -> str:
    return f"{count} GPU" if count == 1 else f"{count} GPUs"
