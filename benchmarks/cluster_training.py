"""The whole service on a large cluster: jobs through the Job controller, reclaim, idling.

``python benchmarks/cluster_training.py [--nodes 1000] [--jobs 4000] [--waiting 10000]``: a control
plane of its own with nodes of 8 GPUs that kwok simulates. The scheduler is the chart's process,
with the part of a Hub that it needs. In this order:

- ``jobs``: ``--jobs`` ``TrainingJob``s of one GPU are created at the same time, all over quota;
  each becomes a Job of the Job controller. Time from the first creation until the last pod runs,
  according to the API server;
- ``full``: more of them fill the cluster. Then a gang that takes half of the GPUs arrives, within
  its project's quota: times until the first job gets its notice, until the last victim's pod is
  deleted, and until the whole gang runs. A pod saves for 20 s;
- ``idle``: ``--waiting`` jobs wait, and there are no events: processor use and memory of the
  scheduler;
- ``restart``, five times: from the start of the process on these objects until its first correct
  decision: a job of a project within its quota, whose object arrived meanwhile, begins or is
  promised the GPUs of a victim.

``--parts`` takes some of them, e.g. ``jobs,idle``. ``--parts plain`` is the baseline of ``jobs``:
as many Jobs of one pod without benchpool, which the kube-scheduler places. The scheduler is one
process; its own times are read from outside.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
from large_cluster import (
    GPUS,
    Spending,
    add_nodes,
    counting,
    cpu_s,
    large_cluster,
    memory_mib,
    start_kwok,
)
from tables import Figure, show

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import Connection, connect, kinds
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_support import kubernetes
from benchpool_support.replicas import Replica, Site, small_hub

JOBS = TRAINING_JOBS.kind
SPACE = "jobs"
PARTS = ("jobs", "full", "idle", "restart")
PLAIN = "plain"
QUIET_S, QUIET_FOR_S, IDLE_S = 2.0, 6.0, 60.0
RESTARTS = 5
CONFIGURATION = """\
version: 1
projects:
  - {{name: owner, quota: {quota}, members: [owner]}}
  - {{name: others, quota: 0, members: [others]}}
  - {{name: more, quota: 0, members: [more]}}
  - {{name: most, quota: 0, members: [most]}}
policy: {{grace_s: 30, min_runtime_s: 0, preemptions_per_hour: 3600, preemptions_per_day: 86400}}
"""
PATIENT = {"BENCHPOOL_LEADER_LEASE_S": "60"}
"""Environment with a long leader lease.

There is no standby, and a busy API server may answer the leader's renewals late.
"""
WORKERS = f"{names.ROLE}={names.ROLE_WORKER}"


class Pool:
    """Scheduler on a cluster, and the observers of both."""

    def __init__(self, plane: ControlPlane, connection: Connection, site: Site, nodes: int) -> None:
        self.plane = plane
        self.connection = connection
        self.site = site
        self.nodes = nodes
        self.gpus = nodes * GPUS
        self.replica: Replica = site.started()
        self.made = 0
        self.restarting = False

    @property
    def pid(self) -> int:
        """The scheduler's process."""
        return self.replica.process.pid

    async def alive(self) -> None:
        """Wait forever.

        Raises:
            AssertionError: The scheduler ended by itself.
        """
        while self.restarting or self.replica.process.poll() is None:
            await asyncio.sleep(1)
        raise AssertionError(f"the scheduler ended: {self.replica.log.read_text()[-4000:]}")

    async def create(self, count: int, user: str, **spec: Any) -> list[str]:
        """Create many jobs at the same time and return their names."""
        jobs = [f"{user}-{self.made + number:05d}" for number in range(count)]
        self.made += count
        body = {"command": ["python3", "train.py"], "user": user, "project": user, **spec}
        await asyncio.gather(*(self._create(name, body) for name in jobs))
        return jobs

    async def _create(self, name: str, spec: dict[str, Any]) -> None:
        body = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        await self.connection.create(JOBS, body, namespace=SPACE)

    def running(self) -> Any:
        """Count worker pods that start to run from now on."""
        return counting(
            self.connection, kinds.PODS, "ADDED",
            namespace=SPACE, labels=WORKERS, fields="status.phase=Running",
        )  # fmt: skip

    async def until_begun(self, name: str, patience_s: float = 300.0) -> None:
        """Wait until a job begins, or is promised the GPUs of its victims."""
        async with asyncio.timeout(patience_s):
            while True:
                job = await self.connection.get(JOBS, name, namespace=SPACE)
                status = job.get("status", {})
                if status.get("attempt") or status.get("promised"):
                    return
                await asyncio.sleep(0.02)

    async def quiet(self, patience_s: float = 900.0) -> float:
        """Wait until the scheduler writes nothing any more; return the seconds."""
        began, since, before = time.monotonic(), time.monotonic(), -1
        async with asyncio.timeout(patience_s):
            while time.monotonic() - since < QUIET_FOR_S:
                calls = Spending.written(self.plane, JOBS.plural)
                if calls != before:
                    since, before = time.monotonic(), calls
                await asyncio.sleep(QUIET_S)
        return since - began


# --------------------------------------------------------------------------- parts


async def jobs(pool: Pool, count: int) -> list[Figure]:
    """Create many jobs at the same time."""
    async with pool.running() as running:
        spending = Spending(pool.plane, {"benchpool": pool.pid})
        began = time.monotonic()
        await pool.create(count, "others")
        created = time.monotonic() - began
        rate = count / (await running.reach(count) - began)
        figures = spending.figures(count)
        calls = spending.calls()
    for name, often in calls:
        print(f"{often / count:8.2f} for each job: {name}", file=sys.stderr)
    return [
        Figure(f"{count} jobs created", "s", (created,)),
        Figure("first creation to all running", "jobs/s", (rate,)),
        *figures,
    ]


async def full(pool: Pool) -> list[Figure]:
    """Fill the cluster, then create a gang that may take half of it."""
    more = pool.gpus - pool.made
    if more > 0:
        async with pool.running() as running:
            await pool.create(more, "others")
            await running.reach(more)
    await pool.quiet()
    workers = pool.gpus // 2 // GPUS
    victims = workers * GPUS
    leaving = counting(
        pool.connection, kinds.PODS, "MODIFIED",
        namespace=SPACE, labels=WORKERS, fields="status.phase=Running",
        holding=b'"deletionTimestamp"',
    )  # fmt: skip
    noticed = counting(
        pool.connection, JOBS, "MODIFIED", namespace=SPACE, holding=b'"state":"pausing"'
    )
    async with noticed as written, leaving as gone, pool.running() as running:
        spending = Spending(pool.plane, {"benchpool": pool.pid})
        began = time.monotonic()
        await pool.create(1, "owner", gpus=GPUS, workers=workers, preemptible=False)
        planned = await written.reach(1) - began
        first = await gone.reach(1) - began
        last = await gone.reach(victims) - began
        gang_runs = await running.reach(workers) - began
        figures = spending.figures(victims)
        calls = spending.calls()
    for name, often in calls:
        print(f"{often / victims:8.2f} for each notice: {name}", file=sys.stderr)
    return [
        Figure(
            f"a gang of {workers} x {GPUS} comes: planned, first notice written", "s", (planned,)
        ),
        Figure("the first pod is told to go", "s", (first,)),
        Figure(f"{victims} notices sent: the last pod is told to go", "s", (last,)),
        Figure("until the gang runs", "s", (gang_runs,)),
        *figures,
    ]


async def idle(pool: Pool, waiting: int) -> list[Figure]:
    """Let many jobs wait, and measure the cost."""
    await pool.quiet()
    more = waiting - await _waiting(pool)
    if more > 0:
        # Jobs that still fit on a node do not wait.
        more += pool.nodes - await _full_nodes(pool)
        await pool.create(more // 2, "more", gpus=GPUS)
        await pool.create(more - more // 2, "most", gpus=GPUS)
    explained = await pool.quiet()
    before, began = cpu_s(pool.pid), time.monotonic()
    await asyncio.sleep(IDLE_S)
    part = 100 * (cpu_s(pool.pid) - before) / (time.monotonic() - began)
    return [
        Figure(f"{await _waiting(pool)} jobs wait: until each says why", "s", (explained,)),
        Figure("processor while nothing happens", "% of a core", (part,)),
        Figure("memory", "MiB", (memory_mib(pool.pid),)),
    ]


async def restart(pool: Pool) -> list[Figure]:
    """Restart the scheduler several times while there are no events."""
    first, spent, memory = zip(*[await _restarted(pool) for _ in range(RESTARTS)], strict=True)
    return [
        Figure("start of the process to the first decision", "s", first),
        Figure("processor time until then", "s", spent),
        Figure("memory then", "MiB", memory),
    ]


async def _restarted(pool: Pool) -> tuple[float, float, float]:
    await pool.quiet()
    pool.restarting = True
    await asyncio.to_thread(pool.replica.end)
    (name,) = await pool.create(1, "owner")
    began = time.monotonic()
    pool.replica = pool.site.start()
    pool.restarting = False
    await pool.until_begun(name)
    return time.monotonic() - began, cpu_s(pool.pid), memory_mib(pool.pid)


async def _waiting(pool: Pool) -> int:
    listed = await pool.connection.list(JOBS, namespace=SPACE)
    return sum(job.get("status", {}).get("state") == "queued" for job in listed.items)


async def _full_nodes(pool: Pool) -> int:
    """Return the number of nodes without eight free GPUs."""
    listed = await pool.connection.list(kinds.PODS, namespace=SPACE, labels=WORKERS)
    return len({pod["spec"]["nodeName"] for pod in listed.items if "nodeName" in pod["spec"]})


# --------------------------------------------------------------------------- without benchpool


async def plain(plane: ControlPlane, connection: Connection, count: int) -> list[Figure]:
    """Create as many Jobs of Kubernetes at the same time as ``jobs`` does, without a gate."""
    pod = {
        "restartPolicy": "Never",
        "tolerations": [{"operator": "Exists"}],
        "containers": [
            {"name": "worker", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        ],
    }
    spec = {"backoffLimit": 0, "template": {"spec": pod}}
    bodies = ({"metadata": {"name": f"plain-{n:05d}"}, "spec": spec} for n in range(count))
    runs = counting(connection, kinds.PODS, "ADDED", namespace=SPACE, fields="status.phase=Running")
    async with runs as running:
        spending, began = Spending(plane), time.monotonic()
        await asyncio.gather(
            *(connection.create(kinds.JOBS, body, namespace=SPACE) for body in bodies)
        )
        rate = count / (await running.reach(count) - began)
        figures = spending.figures(count)
    return [Figure("first creation to all running", "jobs/s", (rate,)), *figures]


# --------------------------------------------------------------------------- all of it


async def measure(plane: ControlPlane, chosen: argparse.Namespace, folder: Path) -> None:
    """Take the figures and show them part by part."""
    async with connect(plane.access.kubeconfig, at_once=64) as connection:
        await kubernetes.define(connection)
        await connection.create(kinds.NAMESPACES, {"metadata": {"name": SPACE}})
        await add_nodes(connection, chosen.nodes)
        start_kwok(plane)
        if chosen.parts == [PLAIN]:
            title = f"{chosen.jobs} plain Jobs on {chosen.nodes} nodes"
            show(title, await plain(plane, connection, chosen.jobs))
            return
        text = CONFIGURATION.format(quota=chosen.nodes * GPUS // 2 + 1)
        with small_hub() as hub:
            site = Site(hub, plane.access.kubeconfig, SPACE, folder, text, PATIENT)
            try:
                pool = await asyncio.to_thread(Pool, plane, connection, site, chosen.nodes)
                watching = asyncio.create_task(pool.alive())
                taking = asyncio.create_task(_parts(pool, chosen))
                await asyncio.wait({watching, taking}, return_when=asyncio.FIRST_COMPLETED)
                if watching.done():
                    taking.cancel()
                    watching.result()
                watching.cancel()
                taking.result()
            finally:
                site.close()


async def _parts(pool: Pool, chosen: argparse.Namespace) -> None:
    where = f"on {chosen.nodes} nodes"
    if "jobs" in chosen.parts:
        show(f"{chosen.jobs} TrainingJobs {where}", await jobs(pool, chosen.jobs))
    if "full" in chosen.parts:
        show(f"A gang takes back half of {pool.gpus} GPUs", await full(pool))
    if "idle" in chosen.parts:
        show(f"Idle {where}", await idle(pool, chosen.waiting))
    if "restart" in chosen.parts:
        show(f"A restart {where}", await restart(pool))


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--nodes", type=int, default=1000)
    options.add_argument("--jobs", type=int, default=4000)
    options.add_argument("--waiting", type=int, default=10_000)
    options.add_argument("--parts", type=lambda text: text.split(","), default=list(PARTS))
    chosen = options.parse_args()
    known = chosen.parts == [PLAIN] or set(chosen.parts) <= set(PARTS)
    if chosen.jobs > chosen.nodes * GPUS or not known:
        options.error(
            f"parts are {', '.join(PARTS)}, or {PLAIN} alone; each node holds {GPUS} jobs"
        )
    with large_cluster() as plane, tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(plane, chosen, Path(folder)))


if __name__ == "__main__":
    main()
