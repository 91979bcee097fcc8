"""Runs passes: look, decide, commit, act.

A pass follows every event that may change the answer; a burst of events is one pass. The facts do
not change between the look and the commit (``Ledger.turn``), and nothing acts before the commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable

from benchpool_scheduler.core.model import JobId, Plan, Preempt, Reason, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.core.states import HOLDS_GPUS, Intent, JobState
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import lifecycle, snapshots
from benchpool_scheduler.service.actions import Actions
from benchpool_scheduler.service.ledger import Draft, Ledger
from benchpool_scheduler.service.outcome import Outcome
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.store.records import JobRecord, PreemptionRecord, Wish

log = logging.getLogger(__name__)

DEBOUNCE_S = 0.01
REST, MOST_REST_S = 4.0, 2.0
"""After a pass, so many times its duration belong to everything else, at most these seconds."""

RETRY_S = 1.0


class Passes:
    """The loop of passes.

    Args:
        decided: Called after each pass with the ids of jobs whose reason changed.
        decide: The core.
    """

    def __init__(
        self,
        ledger: Ledger,
        site: Site,
        actions: Actions,
        outcome: Outcome,
        decided: Callable[[Iterable[str]], None],
        decide: Callable[[Snapshot], Plan] = decide,
    ) -> None:
        self._ledger = ledger
        self._site = site
        self._actions = actions
        self._outcome = outcome
        self._decided = decided
        self._decide = decide
        self._wanted = asyncio.Event()

    def want(self) -> None:
        """Ask for a pass soon; asking again before it begins changes nothing."""
        self._wanted.set()

    async def run(self) -> None:
        """Make passes when they are wanted, for ever."""
        while True:
            await self._wanted.wait()
            await asyncio.sleep(DEBOUNCE_S)
            self._wanted.clear()
            await self._guarded_pass()
            await asyncio.sleep(min(MOST_REST_S, REST * self._outcome.last_pass_s))

    async def _guarded_pass(self) -> None:
        try:
            await self.make()
        except Unavailable as error:
            self._site.report("pass", str(error))
            self._wanted.set()
            await asyncio.sleep(RETRY_S)
        except Exception as error:
            # A pass that fails must not end the service: running jobs stay supervised.
            log.exception("a pass failed")
            self._site.report("pass", f"The last pass failed ({error!r}); nothing was started.")
            await asyncio.sleep(RETRY_S)
        else:
            self._site.report("pass", None)

    async def make(self) -> None:
        """Make one pass. Errors: Unavailable, and nothing has changed."""
        begun = time.perf_counter()
        async with self._ledger.turn:
            now = self._site.clock.now()
            plan = self._decide(snapshots.snapshot(self._ledger, self._site, now))
            draft = Draft(self._ledger)
            apply(draft, self._site, plan, now)
            await self._ledger.commit(*draft.changes())
            self._actions.carry_out(draft)
            changed = self._remember(plan)
        self._outcome.passes += 1
        self._outcome.last_pass_s = time.perf_counter() - begun
        self._outcome.pass_s += self._outcome.last_pass_s
        self._decided(changed)

    def _remember(self, plan: Plan) -> list[str]:
        before, was_over = self._outcome.reasons, self._outcome.over_quota
        reasons: dict[str, Reason] = {str(job): reason for job, reason in plan.reasons.items()}
        over = frozenset(str(job) for job in plan.over_quota)
        changed = [job for job, reason in reasons.items() if before.get(job) != reason]
        changed += [job for job in over ^ was_over if job not in reasons]
        self._outcome.reasons = reasons
        self._outcome.over_quota = over
        self._outcome.shares = {str(name): share for name, share in plan.shares.items()}
        return changed


# --------------------------------------------------------------------------- applying a plan


def apply(draft: Draft, site: Site, plan: Plan, now: float) -> None:
    """Put a plan into the draft."""
    promised: set[JobId] = set()
    for command in plan.commands:
        match command:
            case Start(after=()):
                _start(draft, command, now)
            case Start(job=job, workers=workers):
                lifecycle.promise(draft, job, snapshots.places_of(workers))
                promised.add(job)
            case Preempt():
                _preempt(draft, site, command, now)
    for job_id in tuple(draft.ledger.census.promised):
        if job_id not in promised:
            lifecycle.promise(draft, job_id, ())


def _start(draft: Draft, command: Start, now: float) -> None:
    places = snapshots.places_of(command.workers)
    if draft.job(command.job).state is JobState.QUEUED:
        lifecycle.start(draft, command.job, places, draft.take_port(places[0].node), now)
    else:
        lifecycle.add_workers(draft, command.job, places)


def _preempt(draft: Draft, site: Site, command: Preempt, now: float) -> None:
    victim = draft.job(command.job)
    attempt = draft.attempt(victim)
    if victim.state not in HOLDS_GPUS or attempt is None:
        return
    wish = _wish(draft, site, command, victim, now)
    gone = frozenset(str(gpu) for worker in command.workers for gpu in worker.gpus)
    staying = [w for w in attempt.live_workers if not w.leaving and not gone & set(w.gpus)]
    if staying:
        lifecycle.shrink(draft, victim.id, gone, wish)
        return
    record = PreemptionRecord(
        job=victim.id,
        attempt=victim.attempt,
        at=now,
        claimant=command.claimant,
        for_=wish.for_,
        rule=command.rule,
        lost_gpu_s=command.lost_gpu_s,
        gpus=len(gone),
    )
    lifecycle.preempt(draft, victim.id, wish, record)


def _wish(draft: Draft, site: Site, command: Preempt, victim: JobRecord, now: float) -> Wish:
    grace_s = site.configuration.policy.grace_s
    gpus = sum(len(worker.gpus) for worker in command.workers)
    claimant = None if command.claimant is None else draft.job(command.claimant)
    if claimant is None:
        for_ = "benches"
        why = f"{gpus} of its GPUs are kept for benches"
    else:
        for_ = f"{claimant.project}/{claimant.name}"
        why = (
            f"project {claimant.project} takes back {gpus} GPUs for its job {claimant.name}, "
            f"which needs {claimant.total_gpus}"
        )
    text = (
        f"Paused because {why} (rule {command.rule}). It has {grace_s:g} s to save and resumes by "
        "itself when there is room."
    )
    return Wish(
        kind=Intent.PREEMPT,
        at=now,
        grace_s=grace_s,
        for_=for_,
        text=text,
        claimant=command.claimant,
    )
