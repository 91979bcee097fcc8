"""Reports of node agents are recorded for jobs and benches, as on one machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.benches import LeaseRequest
from benchpool_scheduler.contract.node_report import (
    NodeReport,
    ReportedGpu,
    ReportedPod,
    ReportedUse,
)
from benchpool_scheduler.telemetry import Sampling
from benchpool_scheduler.telemetry.node_reports import NodePod, NodeReports
from benchpool_scheduler.worker.worker_id import WorkerId
from benchpool_support.clocks import FakeClock
from benchpool_support.pools import (
    ADMIN,
    HUB,
    SUSAN,
    make_pool,
    opened,
    reached,
    sleeper,
    until_job,
)
from benchpool_support.scripted import ScriptedRuntime, devices

TICK_S = 600.0  # measurements are made by the tests
GPU = "nvidia.com/gpu"
SLOTS = [
    replace(device, uuid=f"n0/{number}", node="n0", simulated=False)
    for number, device in enumerate(devices(4))
]


def report(look: int, pods: dict[str, NodePod]) -> NodeReport:
    gpus = [
        ReportedGpu(
            f"GPU-{name}",
            GPU,
            [ReportedPod(pod.namespace, pod.name)],
            span_s=10.0,
            activity=0.75 if name == "train" else 0.0,
            memory_used_gib=10.0,
        )
        for name, pod in pods.items()
    ]
    uses = [
        ReportedUse(pod.uid, 10.0, 20.0, memory_gib=2.0, memory_peak_gib=3.0, read_bytes=100)
        for pod in pods.values()
    ]
    return NodeReport(look, gpus, [it.uid for it in pods.values()], uses)


async def test_node_reports_are_assigned_to_worker_and_bench(
    tmp_path: Path,
) -> None:
    pods: dict[str, NodePod] = {}
    reports = NodeReports(lambda: pods.values(), TICK_S)
    sampling = Sampling(reports, TICK_S, workers=reports, reports=reports)
    clock = FakeClock()
    pool = make_pool(tmp_path, clock=clock, runtime=ScriptedRuntime(SLOTS), sampling=sampling)
    async with opened(pool):
        asked = LeaseRequest(user="joe", server="", spawn="s", gpus=1)
        lease = await pool.benches.reserve(HUB, asked)
        job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
        await reached(pool, job.id, State.RUNNING)
        attempt = pool.ledger.attempt(job.id, 1)
        assert attempt is not None
        (worker,) = attempt.workers
        pods["bench"] = NodePod("lab", "jupyter-joe", "u1", "n0", tuple(lease.gpus), lease.id)
        of = WorkerId(job.id, 1, 0)
        pods["train"] = NodePod("lab", "bp-0", "u2", "n0", tuple(worker.gpus), of)
        begin = clock.now()
        for look in range(6):
            clock.pass_s(10.0)
            pool.metering.take_report("n0", report(look, pods))
            await pool.metering.look()
        clock.pass_s(3600.0)  # the agent is away: a gap, and no idleness
        await pool.metering.look()
        await pool.metering.settle()

        database = pool.metering.database
        (total,) = database.totals_of(job.id)
        assert (total.covered_s, total.active_s, total.memory_max_gib) == (60.0, 45.0, 10.0)
        assert (total.holder.user, total.holder.project, total.holder.worker) == (
            "susan",
            "susan",
            0,
        )
        (used,) = database.workers_of(job.id)
        assert (used.covered_s, used.cpu_s, used.memory_peak_gib, used.read_bytes) == (
            60.0,
            120.0,
            3.0,
            600,
        )
        rows = database.buckets(None, begin, clock.now(), 1, by_holder=True)
        assert {it.holder.bench: it.covered_s for it in rows if it.holder.user == "joe"} == {
            lease.id: 60.0
        }
        assert all(it.activity is None for it in pool.gpu_use.gpus(ADMIN))  # no current measurement
        assert not any(it.simulated for it in rows)


async def test_usage_of_ended_job_includes_agent_reports(tmp_path: Path) -> None:
    pods: dict[str, NodePod] = {}
    reports = NodeReports(lambda: pods.values(), TICK_S)
    sampling = Sampling(reports, TICK_S, workers=reports, reports=reports)
    clock, runtime = FakeClock(), ScriptedRuntime(SLOTS)
    pool = make_pool(tmp_path, clock=clock, runtime=runtime, sampling=sampling)
    pool.metering.tick_s = 10.0
    async with opened(pool):
        job = await pool.jobs.submit(SUSAN, sleeper(project="susan"))
        await reached(pool, job.id, State.RUNNING)
        (worker,) = (it for it in runtime.launched if it.job == job.id)
        attempt = pool.ledger.attempt(job.id, 1)
        assert attempt is not None
        slots = tuple(attempt.workers[0].gpus)
        pods["train"] = NodePod("lab", "bp-0", "u2", "n0", slots, worker)
        for look in range(40):
            clock.pass_s(10.0)
            pool.metering.take_report("n0", report(look, pods))
            await pool.metering.look()
        runtime.end(worker, 0, at=clock.now())
        await reached(pool, job.id, State.SUCCEEDED)
        await until_job(pool, job.id, lambda _: pool.jobs.usage(ADMIN, job.id).measured is not None)
        found = pool.jobs.usage(SUSAN, job.id)
        assert found.measured is not None
        assert (found.measured.covered_s, found.measured.active_s) == (400.0, 300.0)
        assert (found.measured.cpu_s, found.measured.worker_covered_s) == (800.0, 400.0)
        assert (found.measured.memory_gib, found.measured.read_bytes) == (3.0, 4000)
        assert (found.coverage, found.simulated) == (1.0, False)
