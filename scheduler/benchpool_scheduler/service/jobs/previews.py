"""Previews of submissions: a pass over the pool plus the new job."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from benchpool_scheduler import contract
from benchpool_scheduler.core.forecast.forecast import BasisKind, estimate_basis
from benchpool_scheduler.core.whatif.preview import Starts
from benchpool_scheduler.phrases import count, exactly
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.cluster_state.state_cache import StateCache
from benchpool_scheduler.service.execution import containers
from benchpool_scheduler.service.jobs import submission_checks
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import job_reasons
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views import awaited_jobs, deadlines
from benchpool_scheduler.service.views.estimates import Estimates


class Previews:
    """Previews for the submission dialog."""

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        state_cache: StateCache,
        admission: Admission,
        estimates: Estimates,
    ) -> None:
        self._ledger = ledger
        self._state_cache = state_cache
        self._observed = observed
        self._admission = admission
        self._estimates = estimates

    async def preview(self, caller: Caller, submission: contract.JobSubmission) -> contract.Preview:
        """Return the preview. Errors: those of a submission, except missing contents."""
        record = self._admission.checked(caller, submission)
        now = self._observed.settings.clock.now()
        submission_checks.check_deadline(submission, now)
        asked = snapshots.candidate(record, self._observed.now, now)
        async with self._ledger.lock:
            found = await asyncio.to_thread(
                self._state_cache.preview, self._state_cache.take_input(), asked
            )
            waits = found.starts == "waits" or record.gated
            wanted = waits and self._estimates.quick
            pool = await self._state_cache.snapshot(now) if wanted else None
        core_reason = found.reason
        reason = None if core_reason is None else job_reasons.from_core(core_reason)
        why = "" if core_reason is None else core_reason.text.rstrip(".")
        if record.gated and found.starts != "never":
            found = replace(found, starts="waits")
            reason = awaited_jobs.reason(self._ledger, record, lambda job: True)
            why = reason.text.rstrip(".")
        starts = self._surely(found.starts, now)
        if pool is not None:
            starts = await asyncio.to_thread(self._estimates.preview, pool, asked, record)
        text = self._text(found.starts, found.within_quota, found.over_quota, why)
        container = containers.describe(
            self._observed.settings, caller.name, submission, record.spec
        )
        late = deadlines.standing(self._ledger, record, starts, now)
        if late is not None and found.starts != "never":
            text = f"{text} {late.text}"
        return contract.Preview(
            project=record.project,
            gpus=record.spec.total_gpus,
            within_quota=found.within_quota,
            over_quota=found.over_quota,
            starts=found.starts,
            text=text if container is None else f"{text} {container.text}",
            reason=None if found.starts == "now" else reason,
            estimated_start=starts,
            container=container,
            deadline=None if found.starts == "never" else late,
        )

    def _surely(self, starts: Starts, now: float) -> contract.EstimatedStart | None:
        """Return the start if the rules alone determine it, or None if it must be estimated."""
        if starts == "now":
            return contract.EstimatedStart(moment(now), moment(now), moment(now))
        if starts == "after-reclaim":
            until = moment(now + self._observed.now.configuration.policy.grace_s)
            return contract.EstimatedStart(
                moment(now), moment(now), until, estimate_basis(BasisKind.RULES.value)
            )
        return None

    def _text(self, starts: Starts, within: int, over: int, why: str) -> str:
        grace = exactly(self._observed.now.configuration.policy.grace_s)
        when = {
            "now": "Starts now",
            "after-reclaim": f"Starts within {grace}, when other jobs have released GPUs",
            "waits": _after("Waits", why),
            "never": _after("Can never run", why),
        }[starts]
        if starts == "never":
            return f"{when}."
        if not over:
            return f"{when}; {count(within, 'GPU')} within the guaranteed quota."
        inside = f"{count(within, 'GPU')} within quota, {over} over it" if within else "over quota"
        return f"{when}; {inside}: may be paused for others, then resumes by itself."


def _after(opening: str, why: str) -> str:
    """Return the opening with its reason, or only the reason if that begins with the same words.

    >>> _after("Waits", "waits for 2 GPUs"), _after("Can never run", "asks for 9 GPUs")
    ('Waits for 2 GPUs', 'Can never run: asks for 9 GPUs')
    """
    if not why:
        return opening
    alike = why.lower().startswith(opening.lower())
    return why[:1].upper() + why[1:] if alike else f"{opening}: {why}"
