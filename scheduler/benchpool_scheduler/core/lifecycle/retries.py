"""Whether a job is tried again after the end of an attempt, by its cause: pure.

Theory of operation
-------------------
``RULES`` has one row for each cause. Ends that are nobody's fault have no number: the job queues
again each time, until so many of them follow one another that the job may be their reason
(``RetryRule.in_a_row``); then it is paused. Failures have a number, each cause its own: after it is
used up the job has failed. The site changes these rows (``retries`` of ``benchpool.yaml``), and a
job asks for its own (``JobSpec.retries``, ``JobSpec.retry_on``).

Two bounds hold for failures whatever was asked: never more than ``MOST_RETRIES`` in all, and never
after a traceback that it had before: the same program would fail in the same line.
Everything that is counted comes from the job's record, so a restart of the service forgets nothing.
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
    """What follows the end of an attempt by one cause.

    Attributes:
        times: The job is tried again so often; None is always, and no failure.
        pause_s: Seconds that it waits before the next attempt.
        avoid_s: Seconds that it keeps off the node, where there are others.
        in_a_row: With ``times`` None: after so many in a row it is paused; None is never.
        meant: A job that asks for retries and names no cause means this one, too.
    """

    times: int | None = 0
    pause_s: float = 0.0
    avoid_s: float = 0.0
    in_a_row: int | None = None
    meant: bool = True


MOST_WAIT_S = 86_400.0
"""The longest pause before a retry, and the longest that a node is kept off, seconds."""
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
"""What holds where neither the site nor the job says otherwise."""

FAILURES = tuple(cause for cause, rule in RULES.items() if rule.times is not None)
"""The causes by which a job fails; after all others it queues again."""

GPU_XIDS = frozenset({48, 62, 64, 74, 79, 92, 94, 95, 110, 119, 120, 140})
"""Errors of the driver that are the GPU's own, after NVIDIA's catalogue of XIDs: its memory, links,
bus and firmware. Others, such as 13 and 31, are mostly a program's."""


@dataclass(frozen=True, slots=True)
class SiteRule:
    """What a site says of one cause; None is what ``RULES`` has."""

    times: int | None = None
    pause_s: float | None = None
    avoid_s: float | None = None


@dataclass(frozen=True, slots=True)
class RetryRules:
    """What a site says of failures; the rest is as in ``RULES``."""

    causes: Mapping[EndCause, SiteRule] = field(default_factory=dict)

    def rule(self, cause: EndCause) -> RetryRule:
        """Return what holds for a job that asks for nothing.

        >>> RetryRules({EndCause.EXIT_CODE: SiteRule(times=1)}).rule(EndCause.EXIT_CODE)
        RetryRule(times=1, pause_s=10.0, avoid_s=0.0, in_a_row=None, meant=True)
        """
        rule, said = RULES[cause], self.causes.get(cause)
        if said is None or rule.times is None:
            return rule
        given = ((one.name, getattr(said, one.name)) for one in fields(SiteRule))
        return replace(rule, **{name: value for name, value in given if value is not None})

    def of_job(self, cause: EndCause, spec: JobSpec) -> RetryRule:
        """Return what holds for a job.

        Its ``retries`` are those of each cause that it means: those that it names, else those that
        the table has as meant. What it names without a number is tried again at least once. Causes
        without a number stay as they are.

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
    """How an attempt ended.

    Attributes:
        traceback: A mark that equal tracebacks share; None where there was none.
        in_a_row: This end and those like it that came directly before it.
    """

    cause: EndCause
    traceback: str | None = None
    in_a_row: int = 1


@dataclass(frozen=True, slots=True)
class PastRetry:
    """A failure after which the job was tried again."""

    cause: EndCause
    traceback: str | None = None


class RetryVerdict(StrEnum):
    """What becomes of the job."""

    AGAIN = "again"
    """It queues again."""
    PAUSED = "paused"
    """It is paused: it was lost too often in a row."""
    NOT_ASKED = "not-asked"
    """It has failed; such a failure is not tried again here."""
    SAME_TRACEBACK = "same-traceback"
    """It has failed, as before one of its retries."""
    USED_UP = "used-up"
    """It has failed; its retries of this cause are used up."""
    MOST = "most"
    """It has failed; it was tried again ``MOST_RETRIES`` times."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a job after an attempt.

    Attributes:
        rule: That of the cause. ``number``: after a failure, how many retries of this cause there
            were, with the one that begins now; after other ends, how many came in a row.
    """

    verdict: RetryVerdict
    rule: RetryRule
    number: int = 0

    @property
    def again(self) -> bool:
        """Whether it queues again."""
        return self.verdict is RetryVerdict.AGAIN


def decide(
    end: AttemptEnd, past: tuple[PastRetry, ...], spec: JobSpec, policy: RetryRules
) -> Decision:
    """Return what becomes of a job that nobody told to stop.

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
