"""Decision whether a job is retried after an attempt, by cause. The functions are pure.

Theory of operation
-------------------
``RULES`` has one row per cause. Causes outside the job's responsibility have no number of retries:
the job is queued again each time. After several in a row (``RetryRule.in_a_row``) the job itself
may be the cause, and it is paused. Failures have a number of retries per cause. When it is used up,
the job has failed. The site changes these rows (``retries`` of ``benchpool.yaml``), and a job sets
its own (``JobSpec.retries``, ``JobSpec.retry_on``).

Two bounds always apply to failures. A job has at most ``MOST_RETRIES`` in total. It is not retried
after a traceback that it had before, since the program would fail in the same line. All counts come
from the job's record, so that they survive a restart of the service.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from types import MappingProxyType

from benchpool_scheduler.contract.spec import MOST_RETRIES, EndCause, JobSpec


@dataclass(frozen=True, slots=True)
class RetryRule:
    """Consequences of an attempt that ended by one cause.

    Attributes:
        times: Number of retries. None means unlimited, and that the end is no failure.
        pause_s: Pause before the next attempt, in seconds.
        avoid_s: Time for which it avoids the node if there are other nodes, in seconds.
        in_a_row: With ``times`` None: number of ends in a row after which it is paused, or None.
        meant: The cause is covered by a job that requests retries without naming causes.
    """

    times: int | None = 0
    pause_s: float = 0.0
    avoid_s: float = 0.0
    in_a_row: int | None = None
    meant: bool = True


MOST_WAIT_S = 86_400.0
"""Longest pause before a retry, and longest time for which a node is avoided, in seconds."""
MOST_LOST = 5
MOST_FAULTS = 20

RULES: Mapping[EndCause, RetryRule] = MappingProxyType(
    {
        EndCause.NODE_LOST: RetryRule(None, in_a_row=MOST_LOST),
        EndCause.EVICTED: RetryRule(None, in_a_row=MOST_LOST),
        EndCause.NOT_TAKEN: RetryRule(None, in_a_row=MOST_LOST),
        EndCause.MACHINE_FAULT: RetryRule(None, in_a_row=MOST_FAULTS),
        EndCause.NO_ROOM: RetryRule(None),
        EndCause.GPU_ERROR: RetryRule(2, pause_s=30.0, avoid_s=3600.0),
        EndCause.OUT_OF_GPU_MEMORY: RetryRule(0, pause_s=30.0),
        EndCause.OUT_OF_MEMORY: RetryRule(0, pause_s=30.0),
        EndCause.TIME_LIMIT: RetryRule(0, meant=False),
        EndCause.COULD_NOT_START: RetryRule(0, pause_s=30.0, meant=False),
        EndCause.HANGING: RetryRule(2, pause_s=10.0),
        EndCause.EXIT_CODE: RetryRule(0, pause_s=10.0),
    }
)
"""Default rules, which the site and the job can change."""

FAILURES = tuple(cause for cause, rule in RULES.items() if rule.times is not None)
"""Causes by which a job fails. After all others it is queued again."""

GPU_XIDS = frozenset({48, 62, 64, 74, 79, 92, 94, 95, 110, 119, 120, 140})
"""NVIDIA XIDs that are the GPU's own errors: its memory, links, bus and firmware.

Other XIDs, such as 13 and 31, are mostly caused by a program.
"""


@dataclass(frozen=True, slots=True)
class SiteRule:
    """Rule of a site for one cause. None takes the value of ``RULES``."""

    times: int | None = None
    pause_s: float | None = None
    avoid_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Rules of a site for failures. The rest is as in ``RULES``."""

    causes: Mapping[EndCause, SiteRule] = field(default_factory=dict)

    def rule(self, cause: EndCause) -> RetryRule:
        """Return the rule for a job without retry settings.

        >>> RetryRules({EndCause.EXIT_CODE: SiteRule(times=1)}).rule(EndCause.EXIT_CODE)
        RetryRule(times=1, pause_s=10.0, avoid_s=0.0, in_a_row=None, meant=True)
        """
        rule, site_rule = RULES[cause], self.causes.get(cause)
        if site_rule is None or rule.times is None:
            return rule
        given = ((one.name, getattr(site_rule, one.name)) for one in fields(SiteRule))
        return replace(rule, **{name: value for name, value in given if value is not None})

    def of_job(self, cause: EndCause, spec: JobSpec) -> RetryRule:
        """Return the rule for a job.

        The job's ``retries`` apply to each cause that it names, else to the causes that the table
        marks as ``meant``. A named cause without a number is retried at least once. Causes with
        unlimited retries are unchanged.

        >>> RetryRules().of_job(EndCause.EXIT_CODE, JobSpec(retries=3)).times
        3
        >>> asked = JobSpec(retry_on=(EndCause.TIME_LIMIT,))
        >>> RetryRules().of_job(EndCause.TIME_LIMIT, asked).times
        1
        >>> RetryRules().of_job(EndCause.GPU_ERROR, asked).times
        0
        """
        rule = self.rule(cause)
        if rule.times is None or (spec.retries is None and not spec.retry_on):
            return rule
        if spec.retry_on:
            at_least_once = max(rule.times, 1) if spec.retries is None else spec.retries
            return replace(rule, times=at_least_once if cause in spec.retry_on else 0)
        asked = spec.retries if rule.meant else min(rule.times, spec.retries or 0)
        return replace(rule, times=asked)


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """End of an attempt.

    Attributes:
        traceback: Fingerprint of the traceback, or None without one.
        in_a_row: Number of similar ends in a row, including this one.
    """

    cause: EndCause
    traceback: str | None = None
    in_a_row: int = 1


@dataclass(frozen=True, slots=True)
class PastRetry:
    """A failure after which the job was retried."""

    cause: EndCause
    traceback: str | None = None


class RetryVerdict(StrEnum):
    """Decision on a job after an attempt."""

    AGAIN = "again"
    """It is queued again."""
    PAUSED = "paused"
    """It is paused, because it was lost too often in a row."""
    NOT_ASKED = "not-asked"
    """It has failed. No retry is configured for this cause."""
    SAME_TRACEBACK = "same-traceback"
    """It has failed with the same traceback as before one of its retries."""
    USED_UP = "used-up"
    """It has failed. Its retries for this cause are used up."""
    MOST = "most"
    """It has failed after ``MOST_RETRIES`` retries."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision on a job after an attempt, with its rule.

    Attributes:
        rule: Rule of the cause.
        number: After a failure: retries for this cause, with the one that begins now. After another
            end: number of such ends in a row.
    """

    verdict: RetryVerdict
    rule: RetryRule
    number: int = 0

    @property
    def again(self) -> bool:
        """Return whether the job is queued again."""
        return self.verdict is RetryVerdict.AGAIN


def decide(
    end: AttemptEnd, past: tuple[PastRetry, ...], spec: JobSpec, policy: RetryRules
) -> Decision:
    """Return the decision on a job that ended without a request to stop.

    Args:
        past: Its retries so far, oldest first.

    >>> end = AttemptEnd(EndCause.GPU_ERROR, "a1")
    >>> decide(end, (), JobSpec(), RetryRules()).again
    True
    >>> decide(end, (PastRetry(EndCause.GPU_ERROR, "a1"),), JobSpec(), RetryRules()).verdict
    <RetryVerdict.SAME_TRACEBACK: 'same-traceback'>
    """
    rule = policy.of_job(end.cause, spec)
    if rule.times is None:
        tired = rule.in_a_row is not None and end.in_a_row >= rule.in_a_row
        return Decision(RetryVerdict.PAUSED if tired else RetryVerdict.AGAIN, rule, end.in_a_row)
    before = Counter(it.cause for it in past)[end.cause]
    if not rule.times:
        return Decision(RetryVerdict.NOT_ASKED, rule, before)
    if end.traceback is not None and any(it.traceback == end.traceback for it in past):
        return Decision(RetryVerdict.SAME_TRACEBACK, rule, before)
    if len(past) >= MOST_RETRIES:
        return Decision(RetryVerdict.MOST, rule, before)
    if before >= rule.times:
        return Decision(RetryVerdict.USED_UP, rule, before)
    return Decision(RetryVerdict.AGAIN, rule, before + 1)
