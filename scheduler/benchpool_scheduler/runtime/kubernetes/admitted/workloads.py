"""Grouping of admitted pods into jobs, and the requests of each job: pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.runtime.admitted import AdmittedWorkload
from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import AdmittedNamespace
from benchpool_scheduler.runtime.kubernetes.admitted.raw_admitted_pods import AdmittedPod

GIB = 1024**3


def job_id(uids: Iterable[str]) -> str:
    """Return the ID of the job of these pods; the same pods give the same ID, in any order.

    >>> len(job_id(["a", "b"])), job_id(["a", "b"]) == job_id(["b", "a"])
    (26, True)
    """
    digest = hashlib.sha256(json.dumps(sorted(uids)).encode()).digest()[:16]
    return base64.b32encode(digest).decode().rstrip("=").lower()


def gather(pods: Iterable[AdmittedPod]) -> dict[str, tuple[AdmittedPod, ...]]:
    """Return the pods of each job, by worker, without pods that have ended.

    Pods that got their GPUs carry the ID of their job. A waiting group is divided by its size: each
    complete part is one job, and the remaining pods wait for the next one.
    """
    found: dict[str, list[AdmittedPod]] = defaultdict(list)
    groups: dict[tuple[str, str], list[AdmittedPod]] = defaultdict(list)
    for pod in pods:
        if pod.view.over or (pod.view.leaving and not pod.view.job):
            continue
        if pod.view.job:
            found[pod.view.job].append(pod)
        elif pod.gated and pod.group is not None:
            groups[pod.view.namespace, pod.group.name].append(pod)
        elif pod.gated:
            found[job_id([pod.view.uid])].append(pod)
    for waiting in groups.values():
        for part in _parts(sorted(waiting, key=_place)):
            found[job_id(pod.view.uid for pod in part)] += part
    return {job: tuple(sorted(them, key=_place)) for job, them in found.items()}


def _parts(pods: Sequence[AdmittedPod]) -> Iterable[Sequence[AdmittedPod]]:
    group = pods[0].group
    size = group.size if group is not None and group.size > 0 else len(pods)
    return (pods[first : first + size] for first in range(0, len(pods), size))


def _place(pod: AdmittedPod) -> tuple[int, int, str]:
    """Return the sort key of a pod within its job."""
    return pod.view.index, pod.order, pod.view.name


def workload_of(
    job: str,
    pods: Sequence[AdmittedPod],
    spaces: Mapping[str, AdmittedNamespace],
    prefixes: tuple[str, ...],
) -> AdmittedWorkload | None:
    """Return the workload of a job; None if the namespace of its pods is not listed.

    Args:
        prefixes: Beginnings of the names of GPU resources.
    """
    first = pods[0]
    space = spaces.get(first.view.namespace)
    if space is None:
        return None
    asked = [gpus_of(pod, prefixes) for pod in pods]
    resource, gpus = asked[0]
    return AdmittedWorkload(
        job=job,
        namespace=space.name,
        owner_kind=first.owner_kind,
        owner=first.owner,
        pods=tuple(pod.view.name for pod in pods),
        user=space.user,
        project=space.project_of(first.project) or space.project,
        gpus=gpus,
        cpus=max(pod.view.requests.get("cpu", 0.0) for pod in pods),
        memory_gib=max(pod.view.requests.get("memory", 0.0) for pod in pods) / GIB,
        resource=resource,
        preemptible=all(pod.preemptible for pod in pods),
        waiting=all(pod.gated and not pod.view.job for pod in pods),
        problem=_problem(pods, space, asked),
    )


def gpus_of(pod: AdmittedPod, prefixes: tuple[str, ...]) -> tuple[str, int]:
    """Return the resource name and number of the GPUs that a pod requests.

    Returns ``("?", 0)`` for GPUs of several kinds.
    """
    found = [
        (name, int(many)) for name, many in pod.view.requests.items() if name.startswith(prefixes)
    ]
    found = [(name, many) for name, many in found if many > 0]
    if len(found) > 1:
        return "?", 0
    return found[0] if found else ("", 0)


def _problem(
    pods: Sequence[AdmittedPod], space: AdmittedNamespace, asked: Sequence[tuple[str, int]]
) -> str:
    """Return why these pods cannot be counted, or an empty text if they can."""
    first, group = pods[0], pods[0].group
    projects = {pod.project for pod in pods}
    if len(projects) > 1:
        return "Its pods name different projects. Name one, or none."
    if space.project_of(first.project) is None:
        allowed = ", ".join((space.project, *space.projects))
        return (
            f"Pods of namespace {space.name} may not use project {visible(first.project)[:100]}; "
            f"an administrator allows: {allowed}."
        )
    if any(resource == "?" for resource, _ in asked):
        return "It requests GPUs of several kinds. One pod may have GPUs of one kind only."
    if asked[0][1] == 0:
        return "It requests no GPU, so it need not wait here. Remove the gate from its template."
    if len(set(asked)) > 1:
        return (
            "The pods of its group request different GPUs. All pods of a group must request the "
            "same."
        )
    if group is not None and not any(pod.view.job for pod in pods):
        if not group.size:
            return (
                f"The pods of group {visible(group.name)[:100]} do not state the size of the "
                "group. Set the annotation benchpool.io/group-size to a number from 1 to 4096."
            )
        if len(pods) < group.size:
            name = visible(group.name)[:100]
            return f"Incomplete group {name}: {len(pods)} of {count(group.size, 'pod')} exist."
    return ""
