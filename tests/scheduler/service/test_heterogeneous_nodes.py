"""Differences between nodes are respected: labels, GPU models, levels, cores and links."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.contract import GpuState, JobSubmission, LeaseRequest, State
from benchpool_scheduler.contract.changes import JobChange, advised
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.runtime import Device, DeviceState, EndedBy, NodeFacts, WorkerId
from benchpool_scheduler.service import Pool
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    SUSAN,
    decided,
    make_pool,
    opened,
    reached,
    sleeper,
    story,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, machine
from benchpool_support.waiting import until_async

ROOM = story(
    """
version: 1
build: {users: {susan: 1}, reserve: 0}
projects:
  - {name: susan, quota: unlimited, members: [susan]}
pools:
  - {name: bench, nodes: {use: bench}, purpose: [build]}
  - {name: rest, purpose: [train]}
topology: [topology.kubernetes.io/zone, example.org/rack]
"""
)


def facts(name: str, rack: str, **more: object) -> NodeFacts:
    labels = {"topology.kubernetes.io/zone": "z", "example.org/rack": rack, "zone-of": "none"}
    return NodeFacts(name, labels, **more)  # type: ignore[arg-type]


@pytest.fixture
async def runtime() -> ScriptedRuntime:
    runtime = ScriptedRuntime(
        (
            *machine("a1"),
            *machine("a2"),
            *machine("b1"),
            *machine("h1", "H100"),
            *machine("w1", "T4", 1),
        )
    )
    runtime.facts = (
        facts("a1", "east", cpus=16.0, memory_gib=64.0),
        facts("a2", "east", cpus=16.0, memory_gib=64.0),
        facts("b1", "west", cpus=32.0, memory_gib=64.0),
        facts("h1", "west", cpus=64.0, memory_gib=512.0),
        NodeFacts("w1", {"use": "bench"}),
    )
    return runtime


@pytest.fixture
async def pool(tmp_path: Path, runtime: ScriptedRuntime) -> AsyncIterator[Pool]:
    async with opened(make_pool(tmp_path, configuration=ROOM, runtime=runtime)) as pool:
        yield pool


async def nodes_of(pool: Pool, submission: JobSubmission) -> list[str]:
    job = await pool.jobs.submit(SUSAN, submission)
    await reached(pool, job.id, State.RUNNING)
    return sorted(pool.jobs.detail(SUSAN, job.id).attempts[-1].nodes)


async def test_job_runs_on_preferred_gpu_model(pool: Pool) -> None:
    assert await nodes_of(pool, sleeper(gpu_models=("H100", "A100"))) == ["h1"]


async def test_required_level_keeps_gang_in_one_domain(pool: Pool) -> None:
    gang = sleeper(gpus=4, workers=2, required_level="rack", gpu_models=("A100",))
    assert set(await nodes_of(pool, gang)) == {"a1", "a2"}


async def test_spread_workers_run_on_separate_nodes(pool: Pool) -> None:
    assert len(set(await nodes_of(pool, sleeper(workers=4, spread=True)))) == 4


async def test_cores_and_memory_are_counted_per_worker(pool: Pool) -> None:
    gang = sleeper(workers=2, cpus=20, memory_gib=40, gpu_models=("A100", "H100"))
    found = await nodes_of(pool, gang)
    assert set(found) <= {"b1", "h1"}
    job = await pool.jobs.submit(SUSAN, sleeper(cpus=60))
    if "h1" in found:
        assert (await decided(pool, job.id)).state is State.QUEUED


async def test_bench_stays_in_build_pool(pool: Pool) -> None:
    lease = await pool.benches.reserve(
        HUB, LeaseRequest(user="susan", server="", spawn="1", gpus=1)
    )
    assert lease.gpus == ["w1/0"]


async def test_linked_gpus_are_assigned_together(tmp_path: Path) -> None:
    gpus = machine("a1")
    runtime = ScriptedRuntime((*gpus, *machine("w1", "T4", 1)))
    pairs = ((0, 0, 9, 0), (0, 0, 0, 9), (9, 0, 0, 0), (0, 9, 0, 0))
    linked = NodeFacts("a1", gpus=tuple(gpu.uuid for gpu in gpus), links=pairs)
    runtime.facts = (linked, NodeFacts("w1", {"use": "bench"}))
    async with opened(make_pool(tmp_path, configuration=ROOM, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(gpus=2))
        await reached(pool, job.id, State.RUNNING)
        assert set(runtime.launched[WorkerId(job.id, 1, 0)].gpus) == {"a1/0", "a1/2"}


# --------------------------------------------------------------------------- changing nodes


async def test_job_waits_until_node_is_ready(tmp_path: Path, runtime: ScriptedRuntime) -> None:
    ready = runtime.facts
    runtime.facts = unready(ready, "h1")
    broken = [
        replace(gpu, state=DeviceState.BROKEN, note="cordoned") if gpu.node == "h1" else gpu
        for gpu in runtime.gpus
    ]
    whole, runtime.gpus = runtime.gpus, tuple(broken)
    async with opened(make_pool(tmp_path, configuration=ROOM, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(gpu_models=("H100",)))
        waiting = await decided(pool, job.id)
        assert waiting.reason is not None
        assert waiting.reason.code == "no-node-ready"
        made = pool.state_cache.rebuilt
        runtime.facts, runtime.gpus = ready, whole
        await pool.housekeeping.look()
        await reached(pool, job.id, State.RUNNING)
        assert pool.state_cache.rebuilt == made  # the state was reused


async def test_queued_job_starts_with_advised_gpu_model(
    pool: Pool,
) -> None:
    await nodes_of(pool, sleeper(gpus=4, gpu_models=("H100",)))
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=4, gpu_models=("H100",)))
    waiting = await decided(pool, job.id)
    assert waiting.reason is not None
    assert "would start now if it accepted the GPU model A100 too" in waiting.reason.remedy
    (advice,) = advised(waiting)
    assert (advice.name, advice.text, advice.label) == (
        "gpu_models",
        "H100, A100",
        "Accept H100, A100",
    )
    with pytest.raises(InvalidInput, match="No machine for training has a GPU of model B200"):
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(gpu_models=("B200",)))
    await pool.jobs.act(SUSAN, job.id, "change", JobChange(gpu_models=("H100", "A100")))
    running = await reached(pool, job.id, State.RUNNING)
    assert running.gpu_models == ("H100", "A100")
    assert pool.jobs.detail(SUSAN, job.id).attempts[-1].nodes == ["a1"]
    with pytest.raises(Refused, match="its GPU models can change while it waits"):
        await pool.jobs.act(SUSAN, job.id, "change", JobChange(gpu_models=()))


async def test_added_cores_reuse_cached_state(pool: Pool, runtime: ScriptedRuntime) -> None:
    filler = sleeper(cpus=60, gpu_models=("H100",))
    await nodes_of(pool, filler)
    second = await pool.jobs.submit(SUSAN, filler)
    assert (await decided(pool, second.id)).state is State.QUEUED
    made = pool.state_cache.rebuilt
    runtime.facts = tuple(
        replace(node, cpus=128.0) if node.name == "h1" else node for node in runtime.facts
    )
    await pool.housekeeping.look()
    await reached(pool, second.id, State.RUNNING)
    assert (pool.state_cache.rebuilt, pool.state_cache.rehoused) == (made, 0)


async def test_new_node_takes_queued_jobs(pool: Pool, runtime: ScriptedRuntime) -> None:
    await nodes_of(pool, sleeper(gpus=4, gpu_models=("H100",)))
    second = await pool.jobs.submit(SUSAN, sleeper(gpus=4, gpu_models=("H100",)))
    await decided(pool, second.id)
    made = pool.state_cache.rebuilt
    runtime.gpus = (*runtime.gpus, *machine("h2", "H100"))
    runtime.facts = (*runtime.facts, facts("h2", "west"))
    await pool.housekeeping.look()
    await reached(pool, second.id, State.RUNNING)
    assert pool.state_cache.rebuilt == made


async def test_unchanged_inventory_triggers_no_pass(pool: Pool) -> None:
    await until_async(lambda: pool.observed.now.latest_pass.passes)
    await pool.housekeeping.look()
    inventory, wanted = pool.observed.now.inventory, pool.passes.wanted
    wanted.clear()
    await pool.housekeeping.look()
    assert pool.observed.now.inventory is inventory
    assert not wanted.is_set()


def unready(nodes: Sequence[NodeFacts], name: str) -> tuple[NodeFacts, ...]:
    return tuple(
        replace(node, ready=False, note="cordoned") if node.name == name else node for node in nodes
    )


# --------------------------------------------------------------------------- slices of GPUs

SMALL = "A100-MIG-1g.10gb"
MIG = "nvidia.com/mig-1g.10gb"


def slices_of(node: str) -> tuple[Device, ...]:
    return tuple(
        Device(f"{node}/mig-1g.10gb/{index}", index, SMALL, node, 10240, False, resource=MIG)
        for index in range(7)
    )


async def test_gpu_slices_are_used_only_when_named(
    tmp_path: Path, runtime: ScriptedRuntime
) -> None:
    small, slices = SMALL, slices_of("b1")
    runtime.gpus = (*machine("b1", gpus=3), *slices, *machine("w1", "T4", 1))
    async with opened(make_pool(tmp_path, configuration=ROOM, runtime=runtime)) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(workers=4, min_workers=1))
        await reached(pool, job.id, State.RUNNING)
        whole = pool.jobs.detail(SUSAN, job.id).attempts[0]
        assert sorted(whole.gpus) == ["b1/0", "b1/1", "b1/2"]
        assert set(whole.nodes) == {"b1"}
        other = await pool.jobs.submit(SUSAN, sleeper(gpus=2, gpu_models=(small,)))
        await reached(pool, other.id, State.RUNNING)
        held = pool.jobs.detail(SUSAN, other.id).attempts[0]
        assert set(held.gpus) <= {slice.uuid for slice in slices}
        assert (held.nodes, len(held.gpus)) == (["b1"], 2)
        with pytest.raises(InvalidInput, match="the largest has 7"):
            await pool.jobs.submit(SUSAN, sleeper(gpus=8, gpu_models=(small,)))
        with pytest.raises(InvalidInput, match="4 GPUs for a worker can never run"):
            await pool.jobs.submit(SUSAN, sleeper(gpus=4, cpus=1))


async def test_held_slice_lowers_gpus_reserved_for_benches(
    tmp_path: Path, runtime: ScriptedRuntime
) -> None:
    benches = story(
        """
version: 1
build: {users: {susan: 2, joe: 1}}
projects:
  - {name: susan, quota: unlimited, members: [susan]}
"""
    )
    runtime.gpus = (*slices_of("a1"), *machine("b1"), *slices_of("b1"))
    async with opened(make_pool(tmp_path, configuration=benches, runtime=runtime)) as pool:
        assert kept(pool) == ["b1/1", "b1/2", "b1/3"]
        request = LeaseRequest("susan", "", "1", 2, gpu_models=[SMALL], resource=MIG)
        lease = await pool.benches.reserve(HUB, request)
        assert kept(pool) == ["b1/3"]
        job = await pool.jobs.submit(SUSAN, sleeper(gpus=3, gpu_models=("A100",)))
        await reached(pool, job.id, State.RUNNING)
        await pool.benches.release(HUB, lease.id)
        assert kept(pool) == ["b1/3"]  # more are reserved when jobs end
        other = await pool.jobs.submit(SUSAN, sleeper(gpus=4, gpu_models=(SMALL,)))
        await reached(pool, other.id, State.RUNNING)


def kept(pool: Pool) -> list[str]:
    gpus = pool.views.status(ADMIN).gpus
    return [gpu.uuid for gpu in gpus if gpu.state is GpuState.BUILD_FREE]


# --------------------------------------------------------------------------- refusing nodes


async def test_refusing_node_is_excluded_temporarily(
    tmp_path: Path, runtime: ScriptedRuntime
) -> None:
    clock = FakeClock()
    made = make_pool(tmp_path, configuration=ROOM, runtime=runtime, clock=clock)
    async with opened(made) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(gpu_models=("H100",)))
        await reached(pool, job.id, State.RUNNING)
        runtime.end(
            WorkerId(job.id, 1, 0), None, EndedBy.NOT_TAKEN, clock.now(), "h1 is out of GPUs"
        )
        waiting = await until_job(pool, job.id, lambda now: now.state is State.QUEUED)
        waiting = await decided(pool, job.id)
        assert waiting.reason is not None
        assert waiting.reason.code == "nodes-excluded"
        assert waiting.reason.text.endswith(
            " h1 did not accept attempt 1, and this job avoids it for 5 s from then on, longer "
            "each time: h1 is out of GPUs."
        )
        assert waiting.reason.remedy.endswith(" h1 is tried again by itself.")
        assert len(runtime.launched) == 1
        clock.pass_s(6)
        pool.want_pass()
        again = await reached(pool, job.id, State.RUNNING)
        assert again.attempt == 2


async def test_node_exclusion_grows_up_to_ten_minutes(
    tmp_path: Path, runtime: ScriptedRuntime
) -> None:
    clock = FakeClock()
    made = make_pool(tmp_path, configuration=ROOM, runtime=runtime, clock=clock)
    runtime.start_at_once = False
    async with opened(made) as pool:
        job = await pool.jobs.submit(SUSAN, sleeper(gpu_models=("H100",)))
        for attempt, length_s in enumerate((5, 20, 80, 320, 600, 600), start=1):
            worker = (await runtime.until_launched(attempt))[-1]
            runtime.end(worker, None, EndedBy.NOT_TAKEN, clock.now(), "h1 is out of GPUs")
            await until_job(pool, job.id, lambda now: now.state is State.QUEUED)
            waiting = await decided(pool, job.id)
            assert waiting.reason is not None
            assert waiting.reason.numbers["left_out_s"] == length_s
            clock.pass_s(length_s + 1)
            pool.want_pass()
        await runtime.until_launched(7)


async def test_gang_restarts_when_one_node_refuses(pool: Pool, runtime: ScriptedRuntime) -> None:
    job = await pool.jobs.submit(SUSAN, sleeper(gpus=4, workers=2, gpu_models=("A100",)))
    await reached(pool, job.id, State.RUNNING)
    first, second = pool.jobs.detail(SUSAN, job.id).attempts[0].nodes
    now = pool.observed.settings.clock.now()
    runtime.end(WorkerId(job.id, 1, 0), None, EndedBy.NOT_TAKEN, now, "did not take it")
    ((other, notice),) = await runtime.until_noticed(1)
    assert (other.worker, notice.kind) == (1, "pause")
    runtime.end(other, 143, EndedBy.NOTICE, now)
    again = await until_job(
        pool, job.id, lambda now: now.attempt == 2 and now.state is State.RUNNING
    )
    assert first not in pool.jobs.detail(SUSAN, again.id).attempts[1].nodes
    assert second in ("a1", "a2", "b1")


# --------------------------------------------------------------------------- refusals

NEVER: list[tuple[JobSubmission, str, str, str]] = [
    (sleeper(gpu_models=("A1000",)), "no-such-model", "gpu_models", "did you mean `A100`?"),
    (sleeper(gpus=4, gpu_models=("T4",)), "no-such-model", "gpu_models", "model T4"),
    (sleeper(required_level="rak"), "no-such-level", "required_level", "did you mean `rack`?"),
    (sleeper(preferred_level="room"), "no-such-level", "preferred_level", "no level 'room'"),
    (sleeper(cpus=65), "larger-than-node", "cpus", "the largest has 64"),
    (sleeper(cpus=33, gpu_models=("A100",)), "larger-than-node", "cpus", "the largest has 32"),
    (sleeper(memory_gib=600), "larger-than-node", "memory_gib", "the largest has 512"),
    (sleeper(gpus=5), "larger-than-node", "gpus", "at most 4 per worker, or for more workers"),
    (
        sleeper(gpus=4, workers=3, required_level="rack"),
        "larger-than-level",
        "required_level",
        "the largest holds 2",
    ),
    (sleeper(image="example.org/job:1"), "no-images", "image", "leave the image out"),
]


@pytest.mark.parametrize(("job", "code", "field", "words"), NEVER, ids=[n[3] for n in NEVER])
async def test_impossible_job_is_refused_with_field_and_number(
    pool: Pool, job: JobSubmission, code: str, field: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await pool.jobs.submit(SUSAN, job)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert words in caught.value.message
    assert pool.jobs.select(ADMIN, all=True) == []
