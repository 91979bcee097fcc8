"""Usable GPUs of a mixed pool: whole GPUs, parts, CPUs and memory (R1, R12).

The pods of a trace arrive one by one in random order, repeatedly, until their total request equals
the GPUs of the pool. No pod leaves. The product's core decides on each in a pass of its own. A pod
that does not fit waits and stays without a place. The unused rest at the end is lost to
fragmentation. The pods belong to one project, so that parts of one GPU may be combined.

    python benchmarks/openb.py PODS.csv.gz NODES.csv.gz [--seeds 3]

Columns of the pods: name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec (models with ``|``
between, or empty); of the nodes: sn, cpu_milli, memory_mib, gpu, model.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tables import Figure, show

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Start,
)
from benchpool_scheduler.core.plan import decide_on

PROJECT = ProjectName("all")


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, compressed or not."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    return list(csv.DictReader(text.splitlines()))


def node_of(row: dict[str, str]) -> Node:
    """Return a node of the pool."""
    name = row["sn"]
    return Node(
        name=NodeName(name),
        gpus=tuple(GpuId(f"{name}/{at}") for at in range(int(row["gpu"]))),
        gpu_model=row["model"],
        cpus=int(row["cpu_milli"]) / 1000,
        memory_gib=int(row["memory_mib"]) / 1024,
        shared=True,
    )


def job_of(row: dict[str, str]) -> JobFacts:
    """Return a pod's request as a job of one worker that cannot be moved."""
    gpus, milli = int(row["num_gpu"]), int(row["gpu_milli"])
    return JobFacts(
        id=JobId(row["name"]),
        project=PROJECT,
        spec=JobSpec(
            gpus=gpus,
            cpus=int(row["cpu_milli"]) / 1000,
            memory_gib=int(row["memory_mib"]) / 1024,
            gpu_models=tuple(filter(None, row["gpu_spec"].split("|"))),
        ),
        fraction=milli if gpus == 1 and milli < WHOLE_GPU else None,
        checkpoints=False,
    )


def asked(job: JobFacts) -> int:
    """Return the requested thousandths of GPUs of a job."""
    return job.fraction or job.spec.gpus * WHOLE_GPU


def arrivals(pods: Sequence[JobFacts], total: int, seed: int) -> Iterator[JobFacts]:
    """Yield pods in random order until the next would exceed the total."""
    draw, demand, turn = random.Random(seed), 0, 0
    while True:
        turn += 1
        for pod in draw.sample(pods, len(pods)):
            demand += asked(pod)
            if demand > total:
                return
            yield replace(pod, id=JobId(f"{pod.id}-{turn}"))


def fill(nodes: Sequence[Node], pods: Sequence[JobFacts], seed: int) -> tuple[float, list[float]]:
    """Let the pods arrive; return the used GPUs in percent, and the milliseconds of every pass."""
    total = sum(len(node.gpus) for node in nodes) * WHOLE_GPU
    state = ClusterState.of(Snapshot(tuple(nodes), (Project(PROJECT, quota=None),), ()))
    held: dict[GpuId, int] = {}
    passes = []
    for job in arrivals(pods, total, seed):
        begin = time.perf_counter()
        state.put(job)
        plan = decide_on(state, 0.0, explain=False)
        started = [command for command in plan.commands if isinstance(command, Start)]
        for start in started:
            state.put(replace(job, activity=Activity.RUNNING, held=start.workers))
        passes.append((time.perf_counter() - begin) * 1000)
        if not started:
            state.drop(job.id)
        for gpu in (gpu for start in started for worker in start.workers for gpu in worker.gpus):
            held[gpu] = held.get(gpu, 0) + (job.fraction or WHOLE_GPU)
    if max(held.values()) > WHOLE_GPU:
        raise AssertionError("a GPU was given out twice")
    return 100 * sum(held.values()) / total, passes


def main() -> None:
    """Measure and print the table."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("pods", type=Path)
    options.add_argument("nodes", type=Path)
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args()
    nodes = [node_of(row) for row in rows(chosen.nodes)]
    pods = [job_of(row) for row in rows(chosen.pods)]
    runs = [fill(nodes, pods, seed) for seed in range(chosen.seeds)]
    show(
        f"{len(pods)} pods in random order on {len(nodes)} nodes until demand is 100 % of GPUs",
        [
            Figure("GPUs in use", "%", tuple(share for share, _ in runs)),
            Figure(
                "median pass with one arrival",
                "ms",
                tuple(statistics.median(passes) for _, passes in runs),
            ),
            Figure(
                "99 of 100 passes within",
                "ms",
                tuple(statistics.quantiles(passes, n=100)[98] for _, passes in runs),
            ),
        ],
    )


if __name__ == "__main__":
    main()
