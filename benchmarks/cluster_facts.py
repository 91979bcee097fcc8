"""The pool's facts in an API server: Kueue's mix as ``TrainingJob``s, and a restart with many jobs.

``python benchmarks/cluster_facts.py [--part 1] [--waiting 10000] [--only mix]``: only etcd and an
API server of its own, as in Kueue's own test, without controllers, nodes or pods; a job ends by
itself after its run time. Figures:

- the baseline mix, where another client creates each job in the API server and the service admits
  it: admissions per second, mean time from creation to admission by class, the number of our
  writes, and the processor time of each part; ``--part 5`` takes a fifth of the jobs;
- a restart with ``--waiting`` jobs: time until the store has read them, time until the first
  worker is started, and the memory of the process then.

``--kubeconfig`` uses an existing API server.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import secrets
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
import msgspec
from large_cluster import Spending, large_cluster
from tables import Figure, show

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.admissions.figures import Figures
from benchpool_scheduler.admissions.mixes import MIXES, Class, Mix, configuration
from benchpool_scheduler.admissions.runtime import TimedRuntime, units
from benchpool_scheduler.configuration import load
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.hub import StaticDirectory
from benchpool_scheduler.kube import Connection, connect
from benchpool_scheduler.kube.kinds import NAMESPACES
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.service import Pool, SystemClock
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_scheduler.simulation.shapes.memory import peak_rss_mib
from benchpool_scheduler.store.kubernetes import FsspecObjects, KubernetesStore
from benchpool_scheduler.store.kubernetes.identifiers import id_of
from benchpool_scheduler.store.records import AddJob, JobRecord
from benchpool_support import kubernetes

JOBS = TRAINING_JOBS.kind
PROJECTS, USERS = 100, 500
LOOK_S = 0.1


# --------------------------------------------------------------------------- the mix


async def admissions(
    kubeconfig: Path, plane: ControlPlane | None, mix: Mix, folder: Path
) -> list[Figure]:
    """Run a mix to its end."""
    clock = SystemClock()
    runtime = TimedRuntime(units(mix.units), clock)
    async with (
        connect(kubeconfig) as connection,
        connect(kubeconfig) as other,
        kubernetes.namespace(connection, "mix") as namespace,
    ):
        store = KubernetesStore(connection, namespace, FsspecObjects(f"file://{folder}/o"))
        pool = Pool(
            store, runtime, configuration(mix, "protected"), state=folder,
            directory=StaticDirectory(), clock=clock,
        )  # fmt: skip
        await pool.open()
        created: dict[str, tuple[str, float]] = {}
        spending = None if plane is None else Spending(plane)
        start, begun, worked = clock.now(), time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as tasks:
            for project in mix.projects:
                for each in mix.classes:
                    tasks.create_task(_create(other, namespace, project, each, created))
        made_s = time.perf_counter() - begun
        # No event reports that the last end is in the API server, so the loop polls it.
        while runtime.finished < mix.jobs or any(pool.figures.read().jobs.values()):
            await asyncio.sleep(LOOK_S)
        found = Figures.of(
            mix, runtime, created, clock="real", policy="protected", start=start,
            wall_s=time.perf_counter() - begun, cpu_s=time.process_time() - worked,
            peak_rss_mib=peak_rss_mib(),
        )  # fmt: skip
        writes = connection.writes
        spent = [] if spending is None else spending.figures(mix.jobs)
        for name, often in [] if spending is None else spending.calls(6):
            print(f"{often / mix.jobs:8.2f} for each job: {name}", file=sys.stderr)
        await pool.close()
    return [
        Figure(f"{mix.jobs} jobs created", "s", (made_s,)),
        Figure("admissions, mean", "1/s", (found.admissions_per_s,)),
        *(
            Figure(f"mean time to admission, {name}", "s", (seconds,))
            for name, seconds in found.latency_s.items()
        ),
        Figure("our writes for each job", "", (writes / mix.jobs,)),
        Figure("our processor time, and the creating client's", "ms each",
               (1000 * found.cpu_s / mix.jobs,)),
        *spent,
    ]  # fmt: skip


async def _create(
    other: Connection, namespace: str, project: str, each: Class,
    created: dict[str, tuple[str, float]],
) -> None:  # fmt: skip
    clock = SystemClock()
    begun = clock.now()
    spec: dict[str, Any] = {
        "command": ["run", repr(each.run_s)],
        "user": project,
        "project": project,
        "gpus": each.units,
        "priority": each.priority,
    }
    for number in range(1, each.jobs + 1):
        await asyncio.sleep(begun + number * each.interval_s - clock.now())
        at = clock.now()
        body = {
            "apiVersion": JOBS.api_version,
            "kind": JOBS.kind,
            "metadata": {"name": f"{project}-{each.name}-{number}"},
            "spec": spec,
        }
        made = await other.create(JOBS, body, namespace=namespace)
        created[id_of(made["metadata"]["uid"])] = (each.name, at)


# --------------------------------------------------------------------------- the restart


async def fill(kubeconfig: Path, namespace: str, count: int, folder: Path) -> None:
    """Create accepted jobs in the API server."""
    async with connect(kubeconfig) as connection:
        await connection.create(NAMESPACES, {"metadata": {"name": namespace}})
        store = KubernetesStore(connection, namespace, FsspecObjects(f"file://{folder}/o"))
        await store.open()
        now = time.time()
        for first in range(0, count, 500):
            numbers = range(first, min(count, first + 500))
            await asyncio.gather(*(store.commit(_job(number, now)) for number in numbers))
        await store.close()


def _job(number: int, now: float) -> AddJob:
    at = now + number / 1000
    record = JobRecord(
        new_job_id(), f"train-{number}", f"p{number % PROJECTS}", f"u{number % USERS}",
        JobState.QUEUED, at, at,
        spec=JobSpec(gpus=1 + number % 8, workers=1 + number % 3, min_workers=1),
    )  # fmt: skip
    submission = JobSubmission(
        entry=CommandEntry(["run", "3600"]),
        env={"EPOCHS": "10", "LR": "1e-3"},
        output_dir="/home/u/project/benchpool-results",
        gpus=record.spec.gpus,
        workers=record.spec.workers,
    )
    return AddJob(record, msgspec.json.encode(submission))


async def restart(kubeconfig: Path, namespace: str, folder: Path) -> list[Figure]:
    """Open a pool on the existing jobs and wait for its first decision."""
    projects = "\n".join(
        f"- {{name: p{project}, quota: 2, members: "
        f"[{', '.join(f'u{user}' for user in range(project, USERS, PROJECTS))}]}}"
        for project in range(PROJECTS)
    )
    gc.collect()
    async with connect(kubeconfig) as connection:
        begun, worked = time.perf_counter(), time.process_time()
        store = KubernetesStore(connection, namespace, FsspecObjects(f"file://{folder}/o"))
        runtime = TimedRuntime(units(200), SystemClock())
        pool = Pool(
            store, runtime, load(f"version: 1\nprojects:\n{projects}"), state=folder,
            directory=StaticDirectory(), clock=SystemClock(),
        )  # fmt: skip
        await pool.open()
        opened_s = time.perf_counter() - begun
        while not runtime.starts:
            await asyncio.sleep(0.01)
        first_s, cpu_s = time.perf_counter() - begun, time.process_time() - worked
        rss = peak_rss_mib()
        await pool.close()
    return [
        Figure("all read", "s", (opened_s,)),
        Figure("the first worker is started", "s", (first_s,)),
        Figure("processor time until then", "s", (cpu_s,)),
        Figure("memory at its peak", "MiB", (rss,)),
    ]


# --------------------------------------------------------------------------- both


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--part", type=int, default=1)
    options.add_argument("--waiting", type=int, default=10_000)
    options.add_argument("--only", choices=("mix", "restart"))
    options.add_argument("--kubeconfig", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if chosen.kubeconfig is not None:
            measure(chosen.kubeconfig, None, chosen, Path(folder))
            return
        with large_cluster() as plane:
            for name in ("kube-scheduler", "kube-controller-manager"):
                plane.processes.kill(name)
            measure(plane.access.kubeconfig, plane, chosen, Path(folder))


def measure(
    kubeconfig: Path, plane: ControlPlane | None, chosen: argparse.Namespace, folder: Path
) -> None:
    """Measure on an API server."""

    async def define() -> None:
        async with connect(kubeconfig) as connection:
            await kubernetes.define(connection)

    asyncio.run(define())
    if chosen.only != "mix":
        namespace = f"many-{secrets.token_hex(4)}"
        asyncio.run(fill(kubeconfig, namespace, chosen.waiting, folder))
        figures = asyncio.run(restart(kubeconfig, namespace, folder / "state"))
        show(f"A restart with {chosen.waiting} waiting jobs", figures)
    if chosen.only != "restart":
        whole = MIXES["baseline"]
        classes = tuple(replace(it, jobs=it.jobs // chosen.part) for it in whole.classes)
        mix = replace(whole, classes=classes)
        figures = asyncio.run(admissions(kubeconfig, plane, mix, folder / "mix"))
        show("Kueue's baseline mix as TrainingJobs", figures)


if __name__ == "__main__":
    main()
