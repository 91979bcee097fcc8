"""Elastic jobs on Kubernetes: single workers join and leave a running job (R10, R18)."""

from __future__ import annotations

import pytest

from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy
from benchpool_support.pods import Stand, launches, pause

pytestmark = pytest.mark.kubernetes


async def test_running_job_grows(stand: Stand) -> None:
    a, b, c = stand.nodes
    (first,) = await stand.run(launches([(a, (0,))]))
    more = launches([(a, (0,)), (b, (0,)), (c, (3,))], job=first.job)[1:]
    await stand.run(more)
    pods = await stand.until_pods(first.job, 3)
    assert [pod["spec"]["nodeName"] for pod in pods] == [a, b, c]
    job = await stand.connection.get(
        kinds.JOBS, f"bp-{first.job}-1", namespace=stand.settings.namespace
    )
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (3, 3)
    secret = await stand.connection.get(
        kinds.SECRETS, f"bp-{first.job}-1", namespace=stand.settings.namespace
    )
    assert {"order", "token-0", "token-1", "token-2"} == set(secret["data"])


async def test_single_worker_stops_while_rest_stay(stand: Stand) -> None:
    a, b, c = stand.nodes
    workers = await stand.run(launches([(a, (0,)), (b, (0,)), (c, (0,))]))
    await stand.runtime.stop(workers[1], pause(1.0))
    (end,) = await stand.ended(workers[1])
    assert end.by is EndedBy.NOTICE
    await stand.until_on(workers[0].job, [a, c])


async def test_shrunken_job_grows_after_scheduler_restart(
    stand: Stand,
) -> None:
    a, b, c = stand.nodes
    first, second = await stand.run(launches([(a, (0,)), (b, (0,))]))
    await stand.runtime.stop(second, pause(1.0))
    await stand.ended(second)
    after = await stand.restarted([first])
    await after.started(first)
    third = launches([(a, (0,)), (b, (0,)), (c, (0,))], job=first.job)[2]
    await after.run([third])
    await after.until_on(first.job, [a, c])


async def test_job_grows_after_lost_worker_was_never_created(
    stand: Stand,
) -> None:
    a, b, c = stand.nodes
    (first,) = await stand.run(launches([(a, (0,))]))
    grown = launches([(a, (0,)), (b, (0,)), (c, (0,))], job=first.job)
    after = await stand.restarted([first, grown[1].worker])
    (end,) = await after.ended(grown[1].worker)
    assert end.by is EndedBy.LOST
    await after.run(grown[2:])
    await after.until_on(first.job, [a, c])
