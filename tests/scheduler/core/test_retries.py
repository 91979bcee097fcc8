"""Decisions on retries: they never exceed the limits, for any request and any failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.causes import MOST_RETRIES, EndCause
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.retries import (
    FAILURES,
    RULES,
    AttemptEnd,
    PastRetry,
    RetryRules,
    RetryVerdict,
    SiteRule,
    decide,
)

counts = st.none() | st.integers(0, MOST_RETRIES)
specs = st.builds(
    JobSpec, retries=counts, retry_on=st.lists(st.sampled_from(EndCause), max_size=4).map(tuple)
)
policies = st.builds(
    RetryRules, st.dictionaries(st.sampled_from(FAILURES), st.builds(SiteRule, times=counts))
)
failures = st.builds(
    AttemptEnd, st.sampled_from(FAILURES), st.none() | st.sampled_from(["a", "b", "c"])
)


def test_each_cause_has_one_row() -> None:
    assert set(RULES) == set(EndCause)


@given(specs, policies, st.lists(failures, max_size=60))
def test_retries_stay_within_limits_and_stop_at_repeated_traceback(
    spec: JobSpec, policy: RetryRules, ends: list[AttemptEnd]
) -> None:
    past: list[PastRetry] = []
    for end in ends:
        decided = decide(end, tuple(past), spec, policy)
        if not decided.again:
            break
        past.append(PastRetry(end.cause, end.traceback))
    assert len(past) <= MOST_RETRIES
    for cause in FAILURES:
        times = policy.of_job(cause, spec).times
        assert times is not None
        assert sum(it.cause is cause for it in past) <= times
    tracebacks = [it.traceback for it in past if it.traceback is not None]
    assert len(tracebacks) == len(set(tracebacks))


@given(failures, policies, st.lists(failures, max_size=3))
def test_job_without_retries_fails_immediately(
    end: AttemptEnd, policy: RetryRules, before: list[AttemptEnd]
) -> None:
    past = tuple(PastRetry(it.cause) for it in before)
    assert decide(end, past, JobSpec(retries=0), policy).verdict is RetryVerdict.NOT_ASKED


@given(specs, policies, st.sampled_from([it for it in EndCause if it not in FAILURES]))
def test_infrastructure_failure_is_always_retried_without_counting(
    spec: JobSpec, policy: RetryRules, cause: EndCause
) -> None:
    past = (PastRetry(EndCause.EXIT_CODE, "a"),) * MOST_RETRIES
    assert decide(AttemptEnd(cause, "a"), past, spec, policy).again


@pytest.mark.parametrize(
    "cause", [EndCause.NODE_LOST, EndCause.EVICTED, EndCause.NOT_TAKEN, EndCause.MACHINE_FAULT]
)
def test_repeatedly_lost_job_waits_for_owner(cause: EndCause) -> None:
    most = RULES[cause].in_a_row
    assert most is not None
    for in_a_row in range(most):
        assert decide(AttemptEnd(cause, None, in_a_row), (), JobSpec(), RetryRules()).again
    end = AttemptEnd(cause, None, most)
    assert decide(end, (), JobSpec(), RetryRules()).verdict is RetryVerdict.PAUSED


@pytest.mark.parametrize(
    ("spec", "site", "cause", "times"),
    [
        (JobSpec(), None, EndCause.GPU_ERROR, 2),
        (JobSpec(), None, EndCause.EXIT_CODE, 0),
        (JobSpec(), 3, EndCause.EXIT_CODE, 3),
        (JobSpec(retries=1), 3, EndCause.EXIT_CODE, 1),
        (JobSpec(retries=4), None, EndCause.GPU_ERROR, 4),
        (JobSpec(retries=4), None, EndCause.TIME_LIMIT, 0),
        (JobSpec(retries=1), 3, EndCause.TIME_LIMIT, 1),
        (JobSpec(retries=4, retry_on=(EndCause.TIME_LIMIT,)), None, EndCause.TIME_LIMIT, 4),
        (JobSpec(retry_on=(EndCause.GPU_ERROR,)), None, EndCause.GPU_ERROR, 2),
        (JobSpec(retry_on=(EndCause.EXIT_CODE,)), None, EndCause.EXIT_CODE, 1),
        (JobSpec(retry_on=(EndCause.NODE_LOST,)), None, EndCause.GPU_ERROR, 0),
    ],
)
def test_site_and_job_retry_settings_are_combined(
    spec: JobSpec, site: int | None, cause: EndCause, times: int
) -> None:
    policy = RetryRules({} if site is None else {cause: SiteRule(times=site)})
    assert policy.of_job(cause, spec).times == times
