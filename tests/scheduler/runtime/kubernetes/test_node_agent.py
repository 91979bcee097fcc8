"""The node agent in a real pod, with the real kubelet, kernel counters and an API server token.

The node has no GPU, so a scripted library replaces the driver.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler, url

from benchpool_cluster import (
    addresses,
    cgroups,
    chart,
    device_plugin,
    images,
    pods,
    product_images,
    releases,
)
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.control_plane import free_port
from benchpool_scheduler.app.cluster_sampling import pods_of
from benchpool_scheduler.contract.kubernetes import NODE_AGENT_AUDIENCE
from benchpool_scheduler.contract.node_report import NodeReport, NodeReportTaken
from benchpool_scheduler.kube import PodTokens, connect
from benchpool_scheduler.telemetry import NO_HOLDER, GpuSample, WorkerSample
from benchpool_scheduler.telemetry.node_reports import NodeReports
from benchpool_scheduler.telemetry.sampler import HeldProcesses
from benchpool_support import fake_driver
from benchpool_support.nvml import ScriptedGpu
from benchpool_support.pods import launches
from benchpool_support.real_pods import Bundle, RealStand
from benchpool_support.waiting import until_async

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(900)]

NODE = "node-1"
EVERY_S = 1.0
BURN = "while True: pass"


def gpus(percent: int) -> list[ScriptedGpu]:
    """Return the GPUs of the node with the UUIDs of its device plug-in."""
    return [
        ScriptedGpu(uuid, percent_now=percent, power_mw=200_000, used_mib=1024)
        for uuid in device_plugin.uuids(NODE)
    ]


@pytest.fixture
def driver(tmp_path: Path) -> fake_driver.FakeDriver:
    """Return the driver library, in a folder that the node's containers can read."""
    found = fake_driver.build(tmp_path / "driver")
    for folder in (found.folder, *found.folder.parents):
        if folder.is_relative_to(tmp_path.parents[1]) and folder.owner() == "root":
            folder.chmod(folder.stat().st_mode | 0o055)
    found.set_gpus(gpus(70))
    return found


class Scheduler:
    """The part of a scheduler that a node agent needs: pod authentication and the report
    endpoint.
    """

    def __init__(self, reports: NodeReports, tokens: PodTokens) -> None:
        self.reports = reports
        self.tokens = tokens
        self.port = free_port(addresses.CONTROL_PLANE)
        self.last: NodeReport | None = None
        self.statuses: list[int] = []

    def serve(self) -> HTTPServer:
        """Serve agents on the address of the control plane."""
        address = r"/services/benchpool/api/v1/nodes/(?P<node>[^/]+)/report"
        server = HTTPServer(Application([url(address, _Report, {"at": self})]))
        server.add_sockets(bind_sockets(self.port, addresses.CONTROL_PLANE, socket.AF_INET))
        return server


class _Report(RequestHandler):
    def initialize(self, at: Scheduler) -> None:
        self.at = at

    async def post(self, node: str) -> None:
        token = self.request.headers.get("Authorization", "").removeprefix("Bearer ")
        good = await self.at.tokens.node(token) == node
        self.set_status(200 if good else 401)
        self.at.statuses.append(self.get_status())
        if good:
            report = msgspec.json.decode(self.request.body, type=NodeReport)
            self.at.last = report
            self.at.reports.take(node, report, asyncio.get_running_loop().time())
            self.finish(msgspec.json.encode(NodeReportTaken(EVERY_S)))


@pytest.fixture
def release(cluster: Cluster) -> Iterator[pods.Space]:
    """Yield the namespace of the release."""
    with pods.space(cluster) as made:
        yield made


@pytest.fixture
async def scheduler(
    cluster: Cluster, release: pods.Space, real: RealStand
) -> AsyncIterator[Scheduler]:
    async with connect(cluster.access.kubeconfig) as connection:
        account = f"system:serviceaccount:{release.name}:benchpool-node-agent"
        tokens = PodTokens(connection, account, NODE_AGENT_AUDIENCE)
        reports = NodeReports(lambda: pods_of(real.runtime), EVERY_S)
        scheduler = Scheduler(reports, tokens)
        server = scheduler.serve()
        yield scheduler
        server.stop()
        await server.close_all_connections()


def objects(release: pods.Space, driver: Path, port: int) -> list[dict[str, Any]]:
    """Return the agent's objects as the chart renders them, pinned to one node and this
    scheduler.
    """
    two = cgroups.ROOT / "unified"
    root = (two if two.exists() else cgroups.ROOT) / f"benchpool-{NODE}"
    agent = {
        "enabled": True,
        "driver": str(driver),
        "cgroups": str(root),
        "nodeSelector": {"kubernetes.io/hostname": NODE, "nvidia.com/gpu.present": None},
    }
    values = {**releases.values(), "telemetry": {"every": 1, "agent": agent}}
    rendered = chart.render(values, release="benchpool", namespace=release.name)
    found = [it for it in rendered.objects if it["metadata"]["name"] == "benchpool-node-agent"]
    (daemon,) = (it for it in found if it["kind"] == "DaemonSet")
    (container,) = daemon["spec"]["template"]["spec"]["containers"]
    for variable in container["env"]:
        if variable["name"] == "BENCHPOOL_URL":
            at = f"http://{addresses.CONTROL_PLANE}:{port}"
            variable["value"] = f"{at}/services/benchpool/"
    return [it for it in found if it["kind"] != "NetworkPolicy"]


async def test_node_agent_reports_gpu_use_by_worker(
    cluster: Cluster,
    release: pods.Space,
    real: RealStand,
    scheduler: Scheduler,
    driver: fake_driver.FakeDriver,
) -> None:
    try:
        built = product_images.build("scheduler")
    except images.CannotMake as lacking:
        pytest.skip(str(lacking))
    cluster.load_image(built.archive, built.name)
    for one in objects(release, driver.folder, scheduler.port):
        if one["kind"] == "ServiceAccount":
            release.create("serviceaccounts", one)
        else:
            release.create("daemonsets", one, "/apis/apps/v1")

    bundle = Bundle(train_py=BURN)
    real.bundle.add(bundle)
    (launch,) = launches(
        [(NODE, [2])], argv=("python3", "-u", "train.py"), files=bundle.files, cpus=0.5
    )
    await real.runtime.start(launch)

    worker, slots = launch.worker, [f"{NODE}/{number}" for number in range(4)]
    held = [HeldProcesses(worker, NO_HOLDER, launch.gpus, 0.5)]
    samples: dict[str, GpuSample] = {}
    used: list[WorkerSample] = []

    async def look(percent: int) -> bool:
        now = asyncio.get_running_loop().time()
        samples.update({it.gpu: it for it in scheduler.reports.sample(slots, now, {})})
        used.extend(scheduler.reports.sample_workers(held, now))
        mine = samples.get(launch.gpus[0])
        return mine is not None and mine.of == worker and mine.activity == percent / 100

    await until_async(lambda: look(70))
    assert set(samples) == set(slots)  # every GPU of the node, including free GPUs
    assert [it.of for slot, it in samples.items() if slot != launch.gpus[0]] == [None] * 3
    assert {it.memory_used_gib for it in samples.values()} == {1.0}

    driver.set_gpus(gpus(10))  # the driver reports new values while the agent runs
    await until_async(lambda: look(10))
    await until_async(lambda: enough(used, look(10)))
    busy = sum(it.cpu_s for it in used) / sum(it.span_s for it in used)
    assert 0.05 < busy < (os.cpu_count() or 1) + 0.5, (
        f"{busy} cores"
    )  # it uses one core, on a busy machine
    assert {it.of for it in used} == {worker}
    assert set(scheduler.statuses) == {200}
    assert scheduler.last is not None
    (found,) = (it for it in scheduler.last.gpus if it.pods)
    assert found.uuid in device_plugin.uuids(NODE)
    assert scheduler.last.problem == ""


async def enough(used: list[WorkerSample], more: Any) -> bool:
    """Return whether the samples of a worker cover more than 5 seconds."""
    await more
    return sum(it.span_s for it in used) > 5.0
