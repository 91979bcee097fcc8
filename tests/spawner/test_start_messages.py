"""Messages of a waiting start, from Kubernetes events and from its queue position."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchpool_scheduler.contract import EstimatedStart, LinePlace, Reason
from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE
from benchpool_spawner import kube_words, line

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "message", "words", "stuck"),
    [
        ("Pulling", 'Pulling image "lab:1"', "Pulling the image lab:1", False),
        (
            "Pulled",
            'Successfully pulled image "lab:1" in 12.3s',
            "The image is pulled (12.3s)",
            False,
        ),
        (
            "Pulled",
            'Container image "lab:1" already present on machine',
            "is on the node",
            False,
        ),
        ("Scheduled", "Successfully assigned lab/x to n", "Assigned to a node", False),
        ("TriggeredScaleUp", "pod triggered scale-up: [{pool 1->2}]", "takes minutes", False),
        (
            "FailedScheduling",
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
            "3 of 3 nodes have too little free nvidia.com/gpu",
            True,
        ),
        (
            "FailedScheduling",
            "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity.",
            "Its home volume is not reachable",
            True,
        ),
        (
            "FailedScheduling",
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            "None of 2 nodes matches its settings",
            True,
        ),
        (
            "FailedScheduling",
            "Scheduling is blocked due to non-empty scheduling gates",
            "Waiting for admission",
            False,
        ),
        (
            "Failed",
            'Failed to pull image "lab:9": not found',
            "The image could not be pulled",
            True,
        ),
        ("BackOff", "Back-off restarting failed container", "The container did not start", True),
        (
            "FailedMount",
            "MountVolume.SetUp failed",
            "A volume of the server is not available yet",
            True,
        ),
        ("SomethingNew", "the words of a later version", "the words of a later version", False),
    ],
)
def test_pod_events_become_messages(reason: str, message: str, words: str, stuck: bool) -> None:
    start_message = kube_words.of_event({"reason": reason, "message": message})
    assert words in start_message.text
    assert start_message.stuck is stuck
    assert 0 < start_message.percent < 100


def test_pod_state_gives_messages_without_events() -> None:
    gated: dict[str, Any] = {"spec": {"schedulingGates": [{"name": ADMISSION_GATE}]}}
    assert [start_message.code for start_message in kube_words.of_pod(gated)] == ["SchedulingGated"]
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}
    pulling = {"status": {"containerStatuses": [{"image": "lab:9", "state": waiting}]}}
    (start_message,) = kube_words.of_pod(pulling)
    assert start_message.text.startswith("The image lab:9 could not be pulled")
    assert start_message.stuck


@pytest.mark.parametrize(
    ("asked", "advised"),
    [
        ("requests.nvidia.com/gpu=1", "Start without a GPU, or try"),
        ("pods=1", "Ask an administrator for more, or try"),
        ("requests.memory=8Gi,requests.nvidia.com/gpu=1", "Ask an administrator for more, or try"),
    ],
)
def test_gpu_shortage_advises_start_without_gpu(asked: str, advised: str) -> None:
    refusal = f'pods "jupyter-susan" is forbidden: exceeded quota: q, requested: {asked}, '
    text, short = kube_words.refused_by_cluster(403, f"{refusal}used: {asked}, limited: {asked}")
    assert short
    assert f"(quota q). {advised} again when another server has stopped." in text


def test_policy_refusal_is_quoted_and_truncated() -> None:
    text, short = kube_words.refused_by_cluster(
        422, "ValidatingAdmissionPolicy 'gpus' with binding 'b' denied request: no GPUs here"
    )
    assert (text, short) == (
        "The cluster rejected the server: no GPUs here. Ask an administrator.",
        False,
    )
    assert len(kube_words.refused_by_cluster(403, "x" * 2000)[0]) < 400


def place(position: int, length: int, **estimate: datetime | None) -> LinePlace:
    reason = Reason("benches-full", "1 GPU is not free.", {}, "Wait.")
    start = EstimatedStart(estimate.get("earliest"), estimate.get("likely"), estimate.get("latest"))
    return LinePlace("i", position, length, NOW, reason, start if estimate else None)


def test_queue_position_message_includes_estimate() -> None:
    assert line.sentence(place(1, 1), NOW) == "You are next: 1 GPU is not free."
    assert line.sentence(place(1, 3), NOW).startswith("You are next of 3 in the queue")
    later = place(3, 4, likely=NOW + timedelta(minutes=40))
    assert line.sentence(later, NOW) == (
        "You are number 3 of 4 in the queue: 1 GPU is not free. It starts in about 40 min."
    )
    soon = place(1, 1, likely=NOW, latest=NOW + timedelta(seconds=35))
    assert line.sentence(soon, NOW).endswith("It starts within 35 s.")


def test_queue_position_is_available_as_data() -> None:
    queue = line.queue(place(2, 3, likely=NOW))
    assert (queue["position"], queue["length"]) == (2, 3)
    assert queue["reason"]["code"] == "benches-full"  # type: ignore[index]
