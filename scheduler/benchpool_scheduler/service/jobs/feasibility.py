"""Refusal of jobs that could never run (R22): the core decides, and the refusal names the remedy.

The check assumes an empty pool, whatever is in use now.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.configuration.nodes import nearest
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.core.capacity.domains import NODE_LEVEL
from benchpool_scheduler.core.explain.never import EmptyPool
from benchpool_scheduler.core.model import ReasonCode
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.service.benches.bench_reserve import capacity
from benchpool_scheduler.service.cluster_state.empty_pool import empty_pool
from benchpool_scheduler.service.cluster_state.snapshots import candidate
from benchpool_scheduler.service.jobs.size_checks import check_bounds, check_places, check_size
from benchpool_scheduler.service.lifecycle.job_reasons import sentence
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import JobRecord

REFUSED = frozenset({ReasonCode.PROJECT_LIMIT, ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA})
"""Reasons that come from a rule; all other reasons come from the machines."""
LEVEL_FIELDS = ("required_level", "preferred_level")


def check_levels(submission: JobSubmission, configuration: Configuration) -> None:
    """Refuse topology levels that the configuration does not have. Errors: InvalidInput."""
    known = (*(level.name for level in configuration.topology), NODE_LEVEL)
    for field in LEVEL_FIELDS:
        name = getattr(submission, field)
        if name is not None and name not in known:
            raise InvalidInput(
                f"The machine room has no level {name!r}{nearest(name, known)}",
                code="no-such-level",
                field=field,
            )


class Feasibility:
    """Check of the core for jobs that can never run, with a refusal that names the remedy."""

    def __init__(self, observed: SchedulerState) -> None:
        self._observed = observed
        self._known: tuple[tuple[object, ...], EmptyPool] | None = None

    def check(self, job: JobRecord, submission: JobSubmission) -> None:
        """Refuse a job that could not run even if the pool were unused and all of it worked (R22).

        Errors: InvalidInput if the machines cannot run it, Refused if a rule forbids it.
        """
        seen = self._observed.now
        never = self._empty_pool(seen).why_never(candidate(job, seen))
        if never is None:
            return

        def could(**other: Any) -> bool:
            changed = replace(job, spec=job.spec.changed(**other))
            return self._empty_pool(seen).why_never(candidate(changed, seen)) is None

        settings = seen.configuration.project(job.project)
        if never.code in REFUSED and settings is not None:
            check_bounds(submission, settings, seen.configuration, could)
        elif settings is not None:
            asked = seen.default_amounts.of(submission)
            if submission.gpu_models:
                check_places(submission, asked, seen.inventory, could)
            check_size(submission, capacity(seen, preemptible=submission.preemptible), could)
            check_places(submission, asked, seen.inventory, could)
        kind = Refused if never.code in REFUSED else InvalidInput
        raise kind(
            f"It can never run: it {never.text}. {sentence(never.remedy)}",
            code=str(never.code),
            numbers=dict(never.numbers),
        )

    def _empty_pool(self, seen: Observations) -> EmptyPool:
        made_of = (seen.inventory, seen.configuration, seen.users)
        known = self._known
        if known is None or any(a is not b for a, b in zip(known[0], made_of, strict=True)):
            known = self._known = made_of, empty_pool(seen)
        return known[1]
