"""Workers as gated pods, pinned to the selected nodes and opened together (R10)."""

from __future__ import annotations

import pytest

from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy
from benchpool_support.pods import Stand, launches, pause

pytestmark = pytest.mark.kubernetes


async def test_gang_runs_on_selected_nodes(stand: Stand) -> None:
    a, b, c = stand.nodes
    gang = launches([(c, (0, 1)), (a, (2, 3)), (b, (0, 1))])
    workers = await stand.run(gang)
    pods = await stand.pods(workers[0].job)
    assert [pod["spec"]["nodeName"] for pod in pods] == [c, a, b]
    slots = [pod["metadata"]["annotations"]["benchpool.io/slots"] for pod in pods]
    assert slots == [f"{c}/0,{c}/1", f"{a}/2,{a}/3", f"{b}/0,{b}/1"]
    assert not any(pod["spec"].get("schedulingGates") for pod in pods)


async def test_gates_stay_closed_until_gang_is_complete(stand: Stand) -> None:
    a, b, _ = stand.nodes
    first, second = launches([(a, (0,)), (b, (0,))])
    await stand.start([first])
    alone = launches([(a, (1,))])
    await stand.run(alone)
    assert await stand.pods(first.worker.job) == []
    await stand.start([second])
    await stand.started(first.worker, second.worker)


async def test_paused_worker_ends_and_frees_its_gpus(stand: Stand) -> None:
    a, b, _ = stand.nodes
    workers = await stand.run(launches([(a, (0, 1, 2, 3)), (b, (0, 1, 2, 3))]))
    for worker in workers:
        await stand.runtime.stop(worker, pause())
    ended = await stand.ended(*workers)
    assert [end.by for end in ended] == [EndedBy.NOTICE, EndedBy.NOTICE]
    again = launches([(a, (0, 1, 2, 3)), (b, (0, 1, 2, 3))], job=workers[0].job, attempt=2)
    await stand.run(again)


async def test_repeated_start_starts_worker_once(stand: Stand) -> None:
    a, _, _ = stand.nodes
    once = launches([(a, (0,))])
    (worker,) = await stand.run(once)
    await stand.start(once)
    listed = await stand.connection.list(kinds.JOBS, namespace=stand.settings.namespace)
    assert len(listed.items) == 1
    assert len(await stand.pods(worker.job)) == 1
