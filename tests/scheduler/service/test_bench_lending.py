"""Idle bench GPUs are lent; their owner queues until the borrower has left (R2, R3)."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract import (
    LeaseRequest,
    LineRequest,
    NodeRequirement,
    State,
    Toleration,
)
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_support.bench_lines import LENDING, asked_until_held, lease, lending, line, place
from benchpool_support.pools import (
    HUB,
    JOE,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
    story,
    waiting,
)
from benchpool_support.scripted import ScriptedRuntime, devices

pytestmark = pytest.mark.slow


def test_lending_configuration_has_no_warning() -> None:
    assert lending().warnings == ()


async def test_idle_bench_gpus_are_lent_and_reclaimed(
    tmp_path: Path,
) -> None:
    runtime = ScriptedRuntime(devices(3))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        for _ in range(3):
            await pool.jobs.submit(JOE, sleeper())
        await runtime.until_launched(3)
        first = place(await pool.benches.wait_in_line(HUB, line(gpus=2)))
        assert (first.position, first.length) == (1, 1)
        assert first.reason.code == "bench-called-back"
        assert first.reason.numbers == {"asked": 2, "busy": 2, "grace_s": 20.0}
        assert first.estimated_start is not None
        assert first.estimated_start.latest is not None
        assert first.estimated_start.earliest is not None
        latest = first.estimated_start.latest - first.estimated_start.earliest
        assert latest == timedelta(seconds=25)
        noticed = await runtime.until_noticed(2)
        assert {notice.for_ for _, notice in noticed} == {"benches"}
        assert "owner is back" in noticed[0][1].text
        waiting = asyncio.ensure_future(asked_until_held(pool, line(gpus=2)))
        for worker, _ in noticed:
            runtime.end(worker, 143)
        held = await waiting
        assert (held.id, len(held.gpus)) == (first.id, 2)
        assert len(runtime.notices) == 2


async def test_nonpreemptible_job_never_borrows_bench_gpu(tmp_path: Path) -> None:
    configuration = story(LENDING.replace("quota: 1", "quota: 3"))
    runtime = ScriptedRuntime(devices(3))
    async with opened(make_pool(tmp_path, configuration=configuration, runtime=runtime)) as pool:
        with pytest.raises(InvalidInput, match="the largest machine has 1 for training"):
            await pool.jobs.submit(JOE, sleeper(gpus=2, preemptible=False))
        await pool.jobs.submit(JOE, sleeper(preemptible=False))
        waits = await pool.jobs.submit(JOE, sleeper(preemptible=False))
        await runtime.until_launched(1)
        await waiting(pool, waits.id)
        assert pool.jobs.detail(JOE, waits.id).job.state is State.QUEUED
        assert len(lease(await pool.benches.wait_in_line(HUB, line(gpus=2))).gpus) == 2


async def test_bench_node_matches_labels_and_home_volume(tmp_path: Path) -> None:
    gpus = [Device(f"{n}/0", 0, "A100", n, None, simulated=True) for n in ("a", "b", "c")]
    runtime = ScriptedRuntime(gpus)
    runtime.facts = tuple(NodeFacts(n, labels={"disk": n}) for n in ("a", "b", "c"))
    runtime.claims = {"lab/home": frozenset({"b"})}
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        asks: list[tuple[dict[str, Any], str]] = [
            ({"claim": "home", "namespace": "lab"}, "b/0"),
            ({"node_selector": {"disk": "c"}}, "c/0"),
            ({"node_affinity": [[NodeRequirement("disk", "NotIn", ["b", "c"])]]}, "a/0"),
        ]
        for number, (wanted, expected) in enumerate(asks):
            request = LeaseRequest(user="zoe", server=str(number), spawn="1", gpus=1, **wanted)
            held = lease(await pool.benches.wait_in_line(HUB, LineRequest(lease=request)))
            assert held.gpus == [expected]
            await pool.benches.release(HUB, held.id)


TAINT = ("big", "", "NoSchedule")


async def test_bench_node_matches_tolerations(tmp_path: Path) -> None:
    runtime = ScriptedRuntime([Device(f"{n}/0", 0, "A", n, None, simulated=True) for n in "ab"])
    runtime.facts = (NodeFacts("a", taints=(TAINT,)), NodeFacts("b"))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        bearing: list[tuple[list[Toleration] | None, set[str]]] = [
            ([], {"b/0"}),
            ([Toleration("small", "Exists")], {"b/0"}),
            ([Toleration("big", "Equal", "", "NoSchedule")], {"a/0", "b/0"}),
            ([Toleration(operator="Exists")], {"a/0", "b/0"}),
            (None, {"a/0", "b/0"}),
        ]
        for tolerations, expected in bearing:
            found = set()
            for number in range(len(expected)):
                asked = LeaseRequest("zoe", str(number), "1", 1, tolerations=tolerations)
                found |= set((await pool.benches.reserve(HUB, asked)).gpus)
            assert found == expected
            for held in pool.benches.leases(HUB):
                await pool.benches.release(HUB, held.id)


async def test_bench_without_possible_node_is_refused(tmp_path: Path) -> None:
    runtime = ScriptedRuntime([Device(f"{n}/0", 0, "A", n, None, simulated=True) for n in "ab"])
    runtime.facts = (NodeFacts("a", {"disk": "slow"}), NodeFacts("b", {"big": ""}, taints=(TAINT,)))
    async with opened(make_pool(tmp_path, configuration=lending(), runtime=runtime)) as pool:
        for wanted, why in (
            ({"node_selector": {"disk": "fast"}}, "none of them has the label disk=fast"),
            (
                {"node_affinity": [[NodeRequirement("zone", "Exists")]]},
                "none of them meets its required node affinity",
            ),
            (
                {"node_selector": {"big": ""}, "tolerations": []},
                "it does not tolerate the taints of its machines (big)",
            ),
        ):
            request = LeaseRequest("zoe", "", "1", 1, **wanted)
            for asking in (
                pool.benches.reserve(HUB, request),
                pool.benches.wait_in_line(HUB, LineRequest(lease=request)),
            ):
                with pytest.raises(Refused) as caught:
                    await asking
                assert caught.value.code == "build-nodes"
                assert caught.value.message.startswith(
                    f"None of the 2 machines with GPUs for benches can take this server: {why}. "
                )


async def test_real_job_is_reclaimed_for_bench_and_resumes(
    tmp_path: Path,
) -> None:
    configuration = story(LENDING.replace("quota: 1", "quota: 0"))
    runtime = LocalRuntime(tmp_path, simulated(2))
    async with opened(make_pool(tmp_path, configuration=configuration, runtime=runtime)) as pool:
        code = "import time, signal, sys\nsignal.signal(15, lambda *_: sys.exit(3))\ntime.sleep(99)"
        job = await pool.jobs.submit(JOE, python_job(code, gpus=2))
        await reached(pool, job.id, State.RUNNING)
        held = await asked_until_held(pool, line("susan", gpus=2))
        assert len(held.gpus) == 2
        now = await reached(pool, job.id, State.QUEUED)
        assert [it.rule for it in now.preemptions] == ["R3"]
        await pool.benches.release(HUB, held.id)
        assert (await reached(pool, job.id, State.RUNNING)).attempt == 2


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        ({"gpu_models": ("A1000",)}, "no-such-model", "did you mean `A100`? Choose another."),
        ({"gpu_models": ("T4",)}, "no-such-model", "known: A100, L4."),
        ({"resource": "nvidia.com/mig-1g.10gb"}, "no-such-model", "mean `nvidia.com/gpu`? Choose"),
        ({"gpus": 2, "gpu_models": ("L4",)}, "larger-than-node", "1 at most. Request fewer."),
        ({"gpus": 3}, "larger-than-node", "3 GPUs for this server are more than any machine"),
    ],
)
async def test_bench_with_unavailable_gpus_is_refused(
    tmp_path: Path, wanted: dict[str, Any], code: str, message: str
) -> None:
    made = [("a", "A100"), ("a", "A100"), ("b", "L4")]
    devices = [
        Device(f"{node}/{at}", at, model, node, None, simulated=True)
        for at, (node, model) in enumerate(made)
    ]
    runtime = ScriptedRuntime(devices)
    request = LeaseRequest(**{"user": "zoe", "server": "", "spawn": "1", "gpus": 1, **wanted})
    settings = story(LENDING.replace("zoe: 2", "zoe: 4"))
    async with opened(make_pool(tmp_path, configuration=settings, runtime=runtime)) as pool:
        for asking in (pool.benches.reserve(HUB, request),
                       pool.benches.wait_in_line(HUB, LineRequest(lease=request))):  # fmt: skip
            with pytest.raises(Refused) as caught:
                await asking
            assert caught.value.code == code
            assert message in caught.value.message
        assert pool.benches.line(HUB) == []
