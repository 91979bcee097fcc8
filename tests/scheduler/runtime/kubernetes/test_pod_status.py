"""Worker ends derived from pod statuses, including statuses that real nodes rarely produce."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView, keep_pod
from benchpool_scheduler.runtime.kubernetes.node_backoff import SEVERAL, NodeBackoff
from benchpool_scheduler.runtime.kubernetes.pod_status import end_of, trouble_of, witness
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawPod
from benchpool_support.pods import settings_for

SETTINGS = settings_for("jobs", pull_s=120.0)


def pod(status: dict[str, Any], *, node: str = "n0", leaving: bool = False) -> PodView:
    """Return a worker's pod in a state."""
    meta: dict[str, Any] = {
        "name": "p",
        "uid": "u",
        "labels": {names.ROLE: names.ROLE_WORKER, names.JOB: "j", names.ATTEMPT: "1"},
        "annotations": {names.USER: "susan"},
    }
    if leaving:
        meta["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    body = {"metadata": meta, "spec": {"containers": [{"name": "worker"}]}, "status": status}
    if node:
        body["spec"]["nodeName"] = node
    return keep_pod(msgspec.convert(body, RawPod))


def waiting(reason: str, message: str) -> PodView:
    """Return a pod whose container waits."""
    state = {"waiting": {"reason": reason, "message": message}}
    return pod({"phase": "Pending", "containerStatuses": [{"name": "worker", "state": state}]})


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("UnexpectedAdmissionError", "Allocate failed: Requested: 4, Available: 2"),
        ("OutOfnvidia.com/gpu", "Node didn't have enough resource: nvidia.com/gpu"),
        ("OutOfcpu", "Node didn't have enough resource: cpu, requested: 4000, used: 6000"),
        ("OutOfmemory", "Node didn't have enough resource: memory"),
        ("NodeAffinity", "Predicate NodeAffinity failed"),
        ("Evicted", "The node had condition: [DiskPressure]."),
    ],
)
def test_pod_rejected_by_kubelet_is_not_taken(reason: str, message: str) -> None:
    refused = pod({"phase": "Failed", "reason": reason, "message": message})
    end = end_of(refused, gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.by, end.exit_code) == (EndedBy.NOT_TAKEN, None)
    assert end.text == f"n0 rejected it ({reason}): {message}"


def test_running_pod_on_lost_node_is_lost() -> None:
    state = {"running": {"startedAt": "2026-11-21T10:00:00Z"}}
    ran = pod(
        {
            "phase": "Failed",
            "reason": "NodeLost",
            "containerStatuses": [{"name": "worker", "state": state}],
        }
    )
    end = end_of(ran, gone=False, asked=False, given_back=None)
    assert end is not None
    assert end.by is EndedBy.LOST


KILLED = {"terminated": {"exitCode": 137, "reason": "Error"}}
COPIED = {"terminated": {"exitCode": 0, "reason": "Completed"}}
COMES = {"waiting": {"reason": "PodInitializing"}}
UNKNOWN = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
    }
}
NO_SPACE = {
    "terminated": {
        "exitCode": 128,
        "reason": "StartError",
        "message": "failed to create containerd task: no space left on device",
    }
}
NO_PYTHON = {
    "terminated": {
        "exitCode": 128,
        "reason": "StartError",
        "message": 'exec: "python3": executable file not found in $PATH',
    }
}
REPORTED_LOST = {
    "terminated": {
        "exitCode": 1,
        "message": '{"by": "lost", "text": "its pod was deleted before it started"}',
    }
}
EVICTED = {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}


def starting(agent: Any, worker: Any = COMES, phase: str = "Failed", **more: Any) -> PodView:
    """Return a pod with these states of the agent container and the worker container."""
    leaving = bool(more.pop("leaving", False))
    statuses = {
        "initContainerStatuses": [{"name": "agent", "state": agent}],
        "containerStatuses": [{"name": "worker", "state": worker}],
    }
    return pod({"phase": phase, **statuses, **more}, leaving=leaving)


@pytest.mark.parametrize(
    ("view", "gone", "by"),
    [
        (starting(KILLED, leaving=True), False, EndedBy.LOST),
        (starting(KILLED, conditions=[EVICTED]), False, EndedBy.LOST),
        (starting(KILLED, conditions=[EVICTED], leaving=True), False, EndedBy.LOST),
        (starting(KILLED, phase="Pending"), True, EndedBy.LOST),
        (starting(KILLED, UNKNOWN, leaving=True), False, EndedBy.LOST),
        (starting(UNKNOWN, UNKNOWN, leaving=True), False, EndedBy.LOST),
        (starting(UNKNOWN, UNKNOWN), False, EndedBy.LOST),
        (starting(KILLED, reason="Evicted", message="low on memory"), False, EndedBy.NOT_TAKEN),
        (starting(KILLED), False, EndedBy.NOT_TAKEN),
        (starting(NO_SPACE), False, EndedBy.NOT_TAKEN),
        (starting(COMES, phase="Pending", leaving=True), True, EndedBy.LOST),
        (starting(COMES, phase="Pending"), True, EndedBy.LOST),
        (starting(COPIED, KILLED, leaving=True), False, EndedBy.LOST),
        (starting(COPIED, KILLED, phase="Running"), True, EndedBy.LOST),
        (starting(COPIED, UNKNOWN, leaving=True), False, EndedBy.LOST),
        (starting(COPIED, UNKNOWN), False, EndedBy.LOST),
        (starting(COPIED, NO_PYTHON, leaving=True), False, EndedBy.LOST),
        (starting(COPIED, NO_SPACE), False, EndedBy.NOT_TAKEN),
        (starting(COPIED, REPORTED_LOST, leaving=True), False, EndedBy.LOST),
        # A failure of a pod that was not removed is attributed to the job.
        (starting(COPIED, NO_PYTHON), False, EndedBy.COULD_NOT_START),
        (starting(COPIED, KILLED), False, EndedBy.ITSELF),
    ],
)
def test_pod_removed_while_starting_never_fails(view: PodView, gone: bool, by: EndedBy) -> None:
    end = end_of(view, gone=gone, asked=False, given_back=None)
    assert end is not None
    assert end.by is by, end.text


@pytest.mark.parametrize("leaving", [False, True])
def test_worker_stopped_while_agent_starts_ends_by_notice(leaving: bool) -> None:
    end = end_of(starting(KILLED, leaving=leaving), gone=False, asked=True, given_back=None)
    assert end is not None
    assert (end.by, end.exit_code) == (EndedBy.NOTICE, None)


def test_agent_install_failure_names_node() -> None:
    end = end_of(starting(NO_SPACE), gone=False, asked=False, given_back=None)
    assert end is not None
    assert end.text == (
        "n0 could not install the agent in its pod (exit code 128): failed to create containerd "
        "task: no space left on device"
    )


@pytest.mark.parametrize(
    ("reason", "message", "text"),
    [
        ("ErrImagePull", "not found", "n0 cannot pull the agent's image agent (ErrImagePull): "),
        ("ImagePullBackOff", "unauthorized", "n0 cannot pull the agent's image agent (ImagePullB"),
        ("CreateContainerError", "deadline", "n0 cannot start the agent's container (CreateCont"),
        ("CreateContainerConfigError", "secret", "n0 cannot start the agent's container (Create"),
    ],
)
def test_agent_image_failure_is_not_blamed_on_job(reason: str, message: str, text: str) -> None:
    waits = {"waiting": {"reason": reason, "message": message}}
    trouble = trouble_of(starting(waits, phase="Pending"), SETTINGS, "n0", None)
    assert trouble is not None
    assert (trouble.by, trouble.bear_s) == (EndedBy.NOT_TAKEN, 120.0)
    assert trouble.text.startswith(text)


@pytest.mark.parametrize(
    ("reason", "message", "by"),
    [
        ("ErrImagePull", "manifest unknown", EndedBy.COULD_NOT_START),
        ("InvalidImageName", "couldn't parse image", EndedBy.COULD_NOT_START),
        ("ImagePullBackOff", "Back-off pulling: unauthorized", EndedBy.COULD_NOT_START),
        ("ErrImagePull", "dial tcp: i/o timeout", EndedBy.NOT_TAKEN),
        ("CreateContainerConfigError", "secret missing", EndedBy.COULD_NOT_START),
        ("CreateContainerError", "context deadline exceeded", EndedBy.NOT_TAKEN),
        ("CreateContainerError", "failed to reserve container name", EndedBy.NOT_TAKEN),
        ("RunContainerError", "exec: python3: not found", EndedBy.COULD_NOT_START),
    ],
)
def test_image_pull_failure_is_attributed_to_job_or_cluster(
    reason: str, message: str, by: EndedBy
) -> None:
    trouble = trouble_of(waiting(reason, message), SETTINGS, "n0", None)
    assert trouble is not None
    assert (trouble.by, trouble.bear_s <= 120.0) == (by, True)


def test_slow_mount_is_attributed_to_node() -> None:
    slow = starting({"waiting": {"reason": "PodInitializing"}}, phase="Pending")
    trouble = trouble_of(slow, SETTINGS, "n0", None)
    assert trouble is not None
    assert (trouble.kind, trouble.by) == ("slow", EndedBy.NOT_TAKEN)


def test_deleted_pod_on_silent_node_has_not_ended() -> None:
    state = {"running": {"startedAt": "2026-11-21T10:00:00Z"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "worker", "state": state}]}
    silent = pod(status, leaving=True)
    assert end_of(silent, gone=False, asked=True, given_back=None) is None
    end = end_of(silent, gone=True, asked=False, given_back=None)
    assert end is not None
    assert end.by is EndedBy.LOST


def test_ended_container_holds_gpus_until_pod_ends() -> None:
    state = {"terminated": {"exitCode": 0, "finishedAt": "2026-11-21T10:00:00Z"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "worker", "state": state}]}
    assert end_of(pod(status), gone=False, asked=False, given_back=None) is None
    end = end_of(pod(status | {"phase": "Succeeded"}), gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.exit_code, end.by) == (0, EndedBy.ITSELF)


def test_evicted_pod_without_message_is_lost() -> None:
    state = {"terminated": {"exitCode": 137, "reason": "Error"}}
    status = {
        "phase": "Failed",
        "reason": "Evicted",
        "message": "The node was low on resource: ephemeral-storage",
        "containerStatuses": [{"name": "worker", "state": state}],
    }
    end = end_of(pod(status), gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.by, end.cause) == (EndedBy.LOST, EndCause.EVICTED)
    assert "ephemeral-storage" in str(end.text)


def test_failure_cause_from_agent_is_reported() -> None:
    message = '{"exit_code": 1, "by": "itself", "cause": "gpu-error", "traceback": "5ec1"}'
    state = {"terminated": {"exitCode": 1, "reason": "Error", "message": message}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": state}]}
    end = end_of(pod(status), gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.cause, end.traceback) == (EndCause.GPU_ERROR, "5ec1")


def test_reason_of_rejected_pod_survives_later_pod_status() -> None:
    trouble = trouble_of(waiting("ErrImagePull", "no such host"), SETTINGS, "n0", None)
    state = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": state}]}
    end = end_of(pod(status, leaving=True), gone=False, asked=False, given_back=trouble)
    assert end is not None
    assert (end.exit_code, end.by) == (None, EndedBy.NOT_TAKEN)
    assert "n0 cannot pull its image (ErrImagePull): no such host" in str(end.text)


@pytest.mark.parametrize(("asked", "by"), [(True, EndedBy.NOTICE), (False, EndedBy.LOST)])
def test_agent_drain_report_is_notice_when_stop_was_requested(asked: bool, by: EndedBy) -> None:
    words = '{"exit_code": 1, "by": "lost", "text": "its node was drained", "ended": 5.0}'
    state = {"terminated": {"exitCode": 1, "message": words}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": state}]}
    end = end_of(pod(status, leaving=True), gone=False, asked=asked, given_back=None)
    assert end is not None
    assert (end.exit_code, end.by) == (1, by)


SPOKEN = {"exitCode": 1, "message": '{"by": "machine-fault", "text": "no space left"}'}
FORGED = {
    "phase": "Failed",
    "containerStatuses": [{"name": "worker", "state": {"terminated": SPOKEN}}],
}


@pytest.mark.parametrize(
    ("found", "who"),
    [
        (waiting("ErrImagePull", "dial tcp 203.0.113.1: i/o timeout"), "user susan"),
        (waiting("CreateContainerError", "context deadline exceeded"), "user susan"),
        (starting({"waiting": {"reason": "PodInitializing"}}, phase="Pending"), "user susan"),
        (pod(FORGED), "user susan"),
        (pod({"phase": "Failed", "reason": "UnexpectedAdmissionError"}), "j"),
        (starting({"waiting": {"reason": "ErrImagePull"}}, phase="Pending"), "j"),
        (starting({"waiting": {"reason": "CreateContainerError"}}, phase="Pending"), "j"),
    ],
    ids=[
        *("an image", "a container", "a volume", "last words"),
        *("the kubelet", "the agent's image", "the agent's container"),
    ],
)
def test_failure_witness_is_user_or_job(found: PodView, who: str) -> None:
    trouble = trouble_of(found, SETTINGS, "n0", None)
    assert witness(found, "j", trouble) == who


def test_jobs_with_bad_image_do_not_block_node() -> None:
    backoff = NodeBackoff(60.0)
    bad = waiting("ErrImagePull", "dial tcp 203.0.113.1: i/o timeout")
    for number in range(5 * SEVERAL):
        who = witness(bad, f"job{number}", trouble_of(bad, SETTINGS, "n0", None))
        backoff.add("n0", who, "n0 cannot pull its image", float(number))
    assert backoff.out(100.0) == {}
    for number in range(SEVERAL):
        who = witness(pod({"phase": "Failed", "reason": "OutOfcpu"}), f"job{number}", None)
        backoff.add("n0", who, "n0 rejected it", 100.0)
    assert backoff.out(101.0) == {"n0": "n0 rejected it"}
