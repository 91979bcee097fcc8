"""What pods say of their workers, also what no node of a test says easily."""

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
def test_a_pod_that_its_kubelet_refuses_was_not_taken_by_its_node(
    reason: str, message: str
) -> None:
    refused = pod({"phase": "Failed", "reason": reason, "message": message})
    end = end_of(refused, gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.by, end.exit_code) == (EndedBy.NOT_TAKEN, None)
    assert end.text == f"n0 did not take it ({reason}): {message}"


def test_a_pod_that_ran_when_its_node_went_away_is_lost() -> None:
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
SAID_LOST = {
    "terminated": {
        "exitCode": 1,
        "message": '{"by": "lost", "text": "its pod was taken away before it started"}',
    }
}
EVICTED = {"type": "DisruptionTarget", "status": "True", "message": "Eviction API: evicting"}


def starting(agent: Any, worker: Any = COMES, phase: str = "Failed", **more: Any) -> PodView:
    """Return a pod by the states of the agent's container and the worker's."""
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
        (starting(COPIED, SAID_LOST, leaving=True), False, EndedBy.LOST),
        # What a pod says without having been taken away is still the job's own.
        (starting(COPIED, NO_PYTHON), False, EndedBy.COULD_NOT_START),
        (starting(COPIED, KILLED), False, EndedBy.ITSELF),
    ],
)
def test_a_pod_that_is_taken_away_while_it_starts_is_lost_and_never_failed(
    view: PodView, gone: bool, by: EndedBy
) -> None:
    end = end_of(view, gone=gone, asked=False, given_back=None)
    assert end is not None
    assert end.by is by, end.text


@pytest.mark.parametrize("leaving", [False, True])
def test_a_worker_that_is_stopped_while_its_agent_comes_did_as_it_was_told(leaving: bool) -> None:
    end = end_of(starting(KILLED, leaving=leaving), gone=False, asked=True, given_back=None)
    assert end is not None
    assert (end.by, end.exit_code) == (EndedBy.NOTICE, None)


def test_an_agent_that_cannot_be_put_into_a_pod_is_told_with_its_node() -> None:
    end = end_of(starting(NO_SPACE), gone=False, asked=False, given_back=None)
    assert end is not None
    assert end.text == (
        "n0 could not put the agent into its pod (exit code 128): failed to create containerd "
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
def test_what_keeps_the_agent_from_its_pod_is_never_the_jobs_fault(
    reason: str, message: str, text: str
) -> None:
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
def test_an_image_that_does_not_come_is_the_jobs_fault_or_the_clusters(
    reason: str, message: str, by: EndedBy
) -> None:
    trouble = trouble_of(waiting(reason, message), SETTINGS, "n0", None)
    assert trouble is not None
    assert (trouble.by, trouble.bear_s <= 120.0) == (by, True)


def test_a_mount_that_does_not_come_is_its_nodes_fault() -> None:
    slow = starting({"waiting": {"reason": "PodInitializing"}}, phase="Pending")
    trouble = trouble_of(slow, SETTINGS, "n0", None)
    assert trouble is not None
    assert (trouble.kind, trouble.by) == ("slow", EndedBy.NOT_TAKEN)


def test_a_pod_on_a_silent_node_has_not_ended_however_long_it_is_deleted() -> None:
    state = {"running": {"startedAt": "2026-11-21T10:00:00Z"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "worker", "state": state}]}
    silent = pod(status, leaving=True)
    assert end_of(silent, gone=False, asked=True, given_back=None) is None
    end = end_of(silent, gone=True, asked=False, given_back=None)
    assert end is not None
    assert end.by is EndedBy.LOST


def test_a_container_that_ended_holds_its_gpus_until_its_pod_has() -> None:
    state = {"terminated": {"exitCode": 0, "finishedAt": "2026-11-21T10:00:00Z"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "worker", "state": state}]}
    assert end_of(pod(status), gone=False, asked=False, given_back=None) is None
    end = end_of(pod(status | {"phase": "Succeeded"}), gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.exit_code, end.by) == (0, EndedBy.ITSELF)


def test_a_pod_that_was_evicted_without_last_words_is_lost() -> None:
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


def test_what_an_agent_found_in_the_log_is_told() -> None:
    said = '{"exit_code": 1, "by": "itself", "cause": "gpu-error", "traceback": "5ec1"}'
    state = {"terminated": {"exitCode": 1, "reason": "Error", "message": said}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": state}]}
    end = end_of(pod(status), gone=False, asked=False, given_back=None)
    assert end is not None
    assert (end.cause, end.traceback) == (EndCause.GPU_ERROR, "5ec1")


def test_what_was_given_back_ends_with_its_reason_whatever_its_pod_says_then() -> None:
    trouble = trouble_of(waiting("ErrImagePull", "no such host"), SETTINGS, "n0", None)
    state = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    status = {"phase": "Failed", "containerStatuses": [{"name": "worker", "state": state}]}
    end = end_of(pod(status, leaving=True), gone=False, asked=False, given_back=trouble)
    assert end is not None
    assert (end.exit_code, end.by) == (None, EndedBy.NOT_TAKEN)
    assert "n0 cannot pull its image (ErrImagePull): no such host" in str(end.text)


@pytest.mark.parametrize(("asked", "by"), [(True, EndedBy.NOTICE), (False, EndedBy.LOST)])
def test_an_agent_that_heard_no_notice_takes_our_stop_for_a_drain(asked: bool, by: EndedBy) -> None:
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
def test_what_one_user_can_bring_about_on_every_node_is_said_by_one_witness(
    found: PodView, who: str
) -> None:
    trouble = trouble_of(found, SETTINGS, "n0", None)
    assert witness(found, "j", trouble) == who


def test_a_user_with_many_jobs_of_a_bad_image_keeps_no_node_from_others() -> None:
    backoff = NodeBackoff(60.0)
    bad = waiting("ErrImagePull", "dial tcp 203.0.113.1: i/o timeout")
    for number in range(5 * SEVERAL):
        who = witness(bad, f"job{number}", trouble_of(bad, SETTINGS, "n0", None))
        backoff.add("n0", who, "n0 cannot pull its image", float(number))
    assert backoff.out(100.0) == {}
    for number in range(SEVERAL):
        who = witness(pod({"phase": "Failed", "reason": "OutOfcpu"}), f"job{number}", None)
        backoff.add("n0", who, "n0 did not take it", 100.0)
    assert backoff.out(101.0) == {"n0": "n0 did not take it"}
