"""Write a snapshot as a scheduling case (formats, section 1), to reproduce a failure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import yaml

from benchpool_scheduler.core.model import (
    Activity,
    Bound,
    JobFacts,
    Node,
    Policy,
    Project,
    Snapshot,
)

BEYOND = ("kept", "is_nominated", "nominated", "preemptions_last_hour", "preemptions_last_day")
"""Facts that a case has no key for; they are written as a comment."""


def as_case(pool: Snapshot, name: str = "found") -> str:
    """Return the snapshot as a case without expectations.

    >>> from benchpool_scheduler.contract.spec import JobSpec
    >>> from benchpool_scheduler.core.model import GpuId, JobId, NodeName, ProjectName
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("box"), (GpuId("0"), GpuId("1"))),),
    ...     projects=(Project(ProjectName("a"), quota=1),),
    ...     jobs=(JobFacts(JobId("j"), ProjectName("a"), JobSpec(gpus=2)),),
    ... )
    >>> print(as_case(pool))
    version: 1
    case: found
    title: found
    nodes:
      - {name: box, gpus: 2}
    projects:
      - {name: a, quota: 1}
    jobs:
      - {name: j, project: a, gpus: 2}
    <BLANKLINE>
    """
    policy = {
        f.name: getattr(pool.policy, f.name)
        for f in fields(Policy)
        if getattr(pool.policy, f.name) != f.default
    }
    lines = ["version: 1", f"case: {name}", f"title: {name}"]
    lines += [f"policy: {_flow(policy)}"] if policy else []
    lines += [f"topology: {_flow(list(pool.topology))}"] if pool.topology else []
    lines += ["nodes:", *(_line(_node(node), node) for node in pool.nodes)]
    lines += ["projects:", *(_line(_project(project), project) for project in pool.projects)]
    uses = [use for use in pool.users if use.used_gpu_s]
    lines += ["users:"] if uses else []
    for use in uses:
        entry = {"name": use.name, "project": use.project, "used_gpu_s": use.used_gpu_s}
        lines.append(_line(entry, use))
    lines += ["jobs:", *(_line(_job(job), job) for job in pool.jobs)]
    return "\n".join(lines) + "\n"


def _flow(value: object) -> str:
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6).strip()


def _line(entry: Mapping[str, Any], thing: object) -> str:
    unsaid = {k: v for k in BEYOND if (v := getattr(thing, k, None))}
    comment = f"      # {unsaid}" if unsaid else ""
    return f"  - {_flow(dict(entry))}{comment}"


def _without_defaults(entry: Mapping[str, Any], unset: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in entry.items() if k not in unset or v != unset[k]}


def _node(node: Node) -> dict[str, Any]:
    return _without_defaults(
        {
            "name": str(node.name),
            "gpus": len(node.gpus),
            "gpu_model": node.gpu_model,
            "cpus": node.cpus,
            "memory_gib": node.memory_gib,
            "labels": dict(node.labels),
            "ready": node.ready,
        },
        {"gpu_model": None, "cpus": None, "memory_gib": None, "labels": {}, "ready": True},
    )


def _project(project: Project) -> dict[str, Any]:
    return _without_defaults(
        {
            "name": str(project.name),
            "parent": project.parent,
            "quota": "unlimited" if project.quota is None else project.quota,
            "limit": project.limit,
            "weight": project.weight,
            "priority": project.priority,
            "cpus": _bound(project.cpus),
            "memory_gib": _bound(project.memory_gib),
            "min_runtime_s": project.min_runtime_s,
            "used_gpu_s": project.used_gpu_s,
        },
        {
            **dict.fromkeys(("parent", "limit", "weight", "cpus", "memory_gib", "min_runtime_s")),
            "priority": 0,
            "used_gpu_s": 0,
        },
    )


def _bound(bound: Bound) -> dict[str, Any] | None:
    if bound == Bound():
        return None
    quota = "unlimited" if bound.quota is None else bound.quota
    entry = {"quota": quota, "limit": bound.limit, "weight": bound.weight}
    return {k: v for k, v in entry.items() if v is not None}


def _job(job: JobFacts) -> dict[str, Any]:
    levels = {"required": job.spec.required_level, "preferred": job.spec.preferred_level}
    return _without_defaults(
        {
            "name": str(job.id),
            "project": str(job.project),
            "user": job.user,
            "gpus": job.spec.gpus,
            "workers": job.spec.workers,
            "min_workers": None
            if job.spec.least_workers == job.spec.workers
            else job.spec.least_workers,
            "priority": job.spec.priority,
            "preemptible": job.spec.preemptible,
            "state": job.activity.value,
            "nodes": [str(worker.node) for worker in job.held],
            "cpus": job.spec.cpus,
            "memory_gib": job.spec.memory_gib,
            "gpu_models": list(job.spec.gpu_models),
            "topology": {k: v for k, v in levels.items() if v},
            "time_limit_s": job.spec.time_limit_s,
            "ran_s": job.ran_s,
            "since_checkpoint_s": job.since_checkpoint_s,
            "checkpoints": job.checkpoints,
        },
        {
            **dict.fromkeys(("user", "min_workers", "time_limit_s", "since_checkpoint_s")),
            **{"workers": 1, "priority": 50, "preemptible": True, "nodes": [], "topology": {}},
            **{"cpus": 0, "memory_gib": 0, "gpu_models": [], "ran_s": 0, "checkpoints": True},
            "state": Activity.QUEUED.value,
        },
    )
