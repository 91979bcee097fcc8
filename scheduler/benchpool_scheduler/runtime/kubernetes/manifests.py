"""From a launch to what the API server is given: pure.

One Indexed Job for an attempt, one Secret with what its agents are told, and for gangs a headless
Service that gives each worker its name and a NetworkPolicy that lets them reach each other; for a
replica of a service a NetworkPolicy that lets the scheduler reach its port. Pods are behind our
gate; they meet the *restricted* pod security standard. ``backoffLimitPerIndex: 0``: no worker is
ever replaced, and one that ends takes no other with it: who goes when is decided in one place, and
that is not the Job controller.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.runtime.kubernetes.agent import paths
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import WORKER, PodView
from benchpool_scheduler.runtime.kubernetes.written_amounts import cores, gibibytes

Manifest = dict[str, Any]

PLACEMENT = f"{names.GROUP}/placement"
"""Annotation of a Job: node and slots of each worker, so that a restart can go on from it."""

MARGIN_S = 30
"""So much longer than the job's own grace a pod may take: its agent sends what is left."""

ANNOTATION_BYTES = 256
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def job(launch: Launch, places_: Sequence[str], settings: ClusterSettings, epoch: int) -> Manifest:
    """Return the Job of an attempt.

    Args:
        launch: Of any of its workers; they differ in their places only.
        places_: What ``placement`` gives for all of them.
    """
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    count = len(launch.nodes)
    labels = labels_of(launch)
    annotations = annotations_of(launch, epoch)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations | {PLACEMENT: ";".join(places_)},
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimitPerIndex": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": 7 * 24 * 3600,
            **settings.workload_hints.job_fields(count),
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod_spec(launch, name, settings),
            },
        },
    }


def labels_of(launch: Launch) -> dict[str, str]:
    """Return the labels of all that belongs to an attempt: ids only."""
    return {
        names.ROLE: names.ROLE_WORKER,
        names.JOB: launch.worker.job,
        names.ATTEMPT: str(launch.worker.attempt),
    }


def annotations_of(launch: Launch, epoch: int) -> dict[str, str]:
    """Return what people want to read: any text may be in it, never more than a little."""
    return {
        names.USER: launch.env.get("BENCHPOOL_USER", "")[:ANNOTATION_BYTES],
        names.PROJECT: launch.env.get("BENCHPOOL_PROJECT", "")[:ANNOTATION_BYTES],
        names.EPOCH: str(epoch),
    }


def pod_spec(launch: Launch, name: str, settings: ClusterSettings) -> Manifest:
    """Return the spec of a worker's pod."""
    user, group = settings.run_as
    spec: Manifest = {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": names.ADMISSION_GATE}],
        "subdomain": name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": math.ceil(launch.grace_s) + MARGIN_S,
        "tolerations": [dict(one) for one in settings.tolerations],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": group,
            "fsGroup": group,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_agent(settings)],
        "containers": [_worker(launch, settings)],
        "volumes": _volumes(launch, name, settings),
    }
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    if settings.pull_secrets:
        spec["imagePullSecrets"] = [{"name": one} for one in settings.pull_secrets]
    return spec


CONFINED: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
SMALL = {"cpu": "100m", "memory": "64Mi"}


def _agent(settings: ClusterSettings) -> Manifest:
    return {
        "name": "agent",
        "image": settings.agent_image,
        "imagePullPolicy": settings.pull_policy,
        "command": ["cp", settings.agent_path, paths.AGENT],
        "securityContext": CONFINED,
        "resources": {"requests": SMALL, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "scratch", "mountPath": paths.ROOT}],
    }


def _worker(launch: Launch, settings: ClusterSettings) -> Manifest:
    mounts: list[Manifest] = [
        {"name": "scratch", "mountPath": paths.ROOT},
        {"name": "order", "mountPath": paths.CONFIG_FOLDER, "readOnly": True},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 (a mount in the pod)
    ]
    if launch.claim is not None:
        mounts.append({"name": "home", "mountPath": launch.claim_path})
    return {
        "name": WORKER,
        "image": launch.image or settings.image,
        "imagePullPolicy": settings.pull_policy,
        # -I: nothing of the image's or the user's Python set-up gets in front of the agent.
        "command": ["python3", "-I", paths.AGENT],
        "securityContext": CONFINED,
        "resources": resources(launch, settings),
        "volumeMounts": mounts,
    }


def resources(launch: Launch, settings: ClusterSettings) -> Manifest:
    """Return what a worker asks for; GPUs and memory are limits too, cores where a site says so."""
    gpus, cpus, memory = len(launch.gpus), launch.cpus, launch.memory_gib
    asked: dict[str, str] = {}
    limits: dict[str, str] = {}
    if cpus:
        asked["cpu"] = cores(cpus)
        if settings.cpu_limit:
            limits["cpu"] = cores(cpus * max(1.0, settings.cpu_limit))
    if memory:
        limits["memory"] = gibibytes(memory)
    if gpus:
        limits[resource_of(launch.gpus)] = str(gpus)
    return {"requests": limits | asked, "limits": limits}


def resource_of(slots: Sequence[str]) -> str:
    """Return what the slots of a worker are counted as. Errors: ValueError for a mixture.

    >>> resource_of(("n0/0", "n0/1")), resource_of(("n0/mig-1g.10gb/2",))
    ('nvidia.com/gpu', 'nvidia.com/mig-1g.10gb')
    """
    kinds = {one.split("/")[1] if one.count("/") == 2 else "" for one in slots}
    if len(kinds) != 1:
        raise ValueError(f"a worker holds GPUs of one kind, not {sorted(kinds)}: {slots}")
    kind = kinds.pop()
    return f"{names.GPU_RESOURCE.partition('/')[0]}/{kind}" if kind else names.GPU_RESOURCE


def _volumes(launch: Launch, name: str, settings: ClusterSettings) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": "scratch", "emptyDir": {"sizeLimit": settings.scratch}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": settings.shm}},
        {"name": "order", "secret": {"secretName": name, "defaultMode": 0o440}},
    ]
    if launch.claim is not None:
        volumes.append({"name": "home", "persistentVolumeClaim": {"claimName": launch.claim}})
    return volumes


def owned_by(name: str, uid: str) -> list[Manifest]:
    """Return owner references to a Job: what it owns goes with it."""
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}]


def secret(
    launch: Launch, uid: str, config: bytes, tokens: Mapping[int, str], epoch: int
) -> Manifest:
    """Return the Secret of an attempt: its configuration, and a token for each worker by index."""
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    data = {paths.CONFIG_FILE: config, **token_files(tokens)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "labels": labels_of(launch),
            "annotations": {names.EPOCH: str(epoch)},
            "ownerReferences": owned_by(name, uid),
        },
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def token_files(tokens: Mapping[int, str]) -> dict[str, bytes]:
    """Return tokens as the files that the workers find."""
    return {paths.TOKEN.format(index=i): token.encode() for i, token in tokens.items()}


def service(launch: Launch, uid: str, epoch: int) -> Manifest:
    """Return the headless Service that names the workers of a gang.

    Names exist before a worker is ready: they meet in order to become so.
    """
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "labels": labels_of(launch),
            "annotations": {names.EPOCH: str(epoch)},
            "ownerReferences": owned_by(name, uid),
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": name},
        },
    }


def peers(launch: Launch, uid: str, epoch: int) -> Manifest:
    """Return the NetworkPolicy by which the workers of a gang reach each other, and nobody else.

    The site's own policies deny what none allows; where there are none, this one denies others.
    """
    return _policy(launch, uid, epoch, {"from": [_pods_of(launch)]})


def entrance(launch: Launch, uid: str, settings: ClusterSettings, epoch: int) -> Manifest:
    """Return the NetworkPolicy by which the scheduler alone reaches the port of a service.

    Where the site has no policies of its own, this one denies others.
    """
    space = {"matchLabels": {"kubernetes.io/metadata.name": settings.scheduler_namespace}}
    scheduler = {
        "namespaceSelector": space,
        "podSelector": {"matchLabels": dict(settings.scheduler_labels)},
    }
    ports = [{"port": launch.serves, "protocol": "TCP"}]
    return _policy(launch, uid, epoch, {"from": [scheduler], "ports": ports})


def _policy(launch: Launch, uid: str, epoch: int, ingress: Manifest) -> Manifest:
    """Return what lets into the pods of an attempt, and nothing else does."""
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": name,
            "labels": labels_of(launch),
            "annotations": {names.EPOCH: str(epoch)},
            "ownerReferences": owned_by(name, uid),
        },
        "spec": _pods_of(launch) | {"policyTypes": ["Ingress"], "ingress": [ingress]},
    }


def _pods_of(launch: Launch) -> Manifest:
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    return {"podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": name}}}


# --------------------------------------------------------------------------- places


def placement(node: str, slots: Sequence[str]) -> str:
    """Return where a worker goes, as it stands in the Job's annotation.

    >>> placement("n0", ("n0/0", "n0/1")), placement("n0", ())
    ('n0=n0/0,n0/1', 'n0=')
    """
    return f"{node}={','.join(slots)}"


def placements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return node and slots of each worker from the Job's annotation.

    >>> placements("n0=n0/0,n0/1;n1=")
    [('n0', ('n0/0', 'n0/1')), ('n1', ())]
    """
    found = []
    for one in text.split(";") if text else ():
        node, _, slots = one.partition("=")
        found.append((node, tuple(word for word in slots.split(",") if word)))
    return found


def opening(pod: PodView, node: str, slots: Sequence[str], epoch: int) -> Manifest:
    """Return the one strategic merge patch that pins a pod to a node and opens its gate.

    By ``matchFields`` the kube-scheduler looks at that one node only. It is for the pod as it was
    seen: a second patch meets another version and changes nothing. Errors: ValueError when our
    gate is open already.
    """
    if names.ADMISSION_GATE not in pod.gates:
        raise ValueError(f"{names.ADMISSION_GATE} is not in {pod.gates}")
    given: dict[str, str | None] = {names.SLOTS: ",".join(slots), names.EPOCH: str(epoch)}
    # Nobody applies pods of ours: keeping their books costs each later write of the
    # kube-scheduler and the kubelet too, and one empty entry ends it (KEP-555).
    more: Manifest = {"managedFields": [{}]}
    if pod.foreign:
        given |= {names.WORKER: str(pod.index), names.REASON: None}
        more = {"labels": {names.JOB: pod.job, names.ATTEMPT: str(pod.attempt)}}
    return {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": pod.version,
            "annotations": given,
            **more,
        },
        "spec": {
            "schedulingGates": [{"$patch": "delete", "name": names.ADMISSION_GATE}],
            "affinity": pinned(pod.affinity, node),
        },
    }


def pinned(affinity: Mapping[str, Any] | None, node: str) -> Manifest:
    """Return an affinity that allows one node only, of those that it allowed before.

    Terms are alternatives, so each gets the node; what is preferred stays.

    >>> pinned(None, "n0")["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n0']}]}]
    """
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    before = dict(affinity or {})
    of_nodes = dict(before.get("nodeAffinity") or {})
    required = dict(of_nodes.get(REQUIRED) or {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), only]} for term in terms
    ]
    return before | {"nodeAffinity": of_nodes | {REQUIRED: required}}


def growing(launch: Launch, places_: Sequence[str], epoch: int) -> Manifest:
    """Return the merge patch that gives a Job more workers."""
    count = len(launch.nodes)
    return {
        "metadata": {"annotations": {PLACEMENT: ";".join(places_), names.EPOCH: str(epoch)}},
        "spec": {"completions": count, "parallelism": count},
    }
