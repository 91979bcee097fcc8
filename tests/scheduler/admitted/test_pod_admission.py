"""Admitted pods get a node and GPUs by their scheduling gate.

Waiting pods show their reason and are never deleted.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import Connection, kinds
from benchpool_scheduler.runtime import EndedBy, Launch, WorkerEnded, WorkerEvent, WorkerId
from benchpool_scheduler.runtime.kubernetes import manifests
from benchpool_scheduler.runtime.kubernetes.admitted.admitted_pods import AdmittedPods
from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import AdmittedNamespace
from benchpool_scheduler.runtime.kubernetes.admitted.raw_admitted_pods import AdmittedPod
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptRegistry, AttemptState
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView
from benchpool_scheduler.runtime.kubernetes.informers import Informers
from benchpool_scheduler.runtime.kubernetes.work_queue import WorkQueue
from benchpool_support.admitted import pod
from benchpool_support.waiting import PATIENCE_S

SETTINGS = ClusterSettings(
    "work",
    "job",
    "agent",
    "http://agent",
    admitted_namespaces=(AdmittedNamespace("team-a", "vision", "susan"),),
)


def of_two(name: str) -> AdmittedPod:
    """Return a pod that belongs to a group of two."""
    return pod(name, labels={names.GROUP_NAME: "g"}, annotations={names.GROUP_SIZE: "2"})


class Written:
    """Connection that records patches."""

    def __init__(self) -> None:
        self.patches: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def patch(self, kind: kinds.Kind, name: str, change: Any, **_: Any) -> None:
        """Record the patch."""
        self.patches.put_nowait((name, change))


class Seen:
    """Observed cluster state: the given pods, and nodes in zones named by their first letter."""

    def __init__(self, *pods: AdmittedPod) -> None:
        self.admitted = list(pods)
        self.admitted_changes = 1
        self.admitted_news = asyncio.Event()

    def put(self, *pods: AdmittedPod) -> None:
        """Add these pods."""
        self.admitted = list(pods)
        self.admitted_changes += 1

    def node(self, name: str) -> NodeView:
        """Return a ready node."""
        return NodeView(name, {"zone": name[0]}, False, (), True, "", {}, {})


class Desk:
    """Admission of pods, with its inputs and its reported worker ends."""

    def __init__(self, *pods: AdmittedPod) -> None:
        self.written = Written()
        self.seen = Seen(*pods)
        self.events: list[WorkerEvent] = []
        self.queue = WorkQueue()
        self.pods = AdmittedPods(
            cast(Connection, self.written),
            SETTINGS,
            cast(Informers, self.seen),
            self.queue,
            self.events.append,
        )
        (self.job,) = (one.job for one in self.pods.admitted()) if pods else ("",)

    def started(self, *nodes: str, attempt: int = 1) -> AttemptState:
        """Assign these nodes to the workers of the job."""
        state = AttemptRegistry().attempt(self.job, attempt, 0.0)
        state.wanted = len(nodes)
        for index, node in enumerate(nodes):
            worker = WorkerId(self.job, attempt, index)
            gpus = (f"{node}/{index}",)
            launch = Launch(worker, (), {}, gpus, None, nodes=nodes, admitted=True)
            self.pods.bind(state, launch)
        return state


async def test_pod_becomes_worker_and_is_admitted_immediately() -> None:
    desk = Desk(pod("train"))
    attempt = desk.started("a1")
    (opening,) = attempt.to_open()
    assert (opening.node, opening.slots) == ("a1", ("a1/0",))
    assert opening.pod is not None
    assert (opening.pod.job, opening.pod.attempt, opening.pod.index) == (desk.job, 1, 0)


async def test_group_is_admitted_when_all_pods_have_nodes() -> None:
    desk = Desk(of_two("w-0"), of_two("w-1"))
    attempt = desk.started("a1", "b1")
    assert attempt.whole
    assert [one.node for one in attempt.to_open()] == ["a1", "b1"]


async def test_pod_on_forbidden_node_ends_as_not_taken() -> None:
    desk = Desk(pod("train", nodeSelector={"zone": "b"}))
    assert desk.started("a1").workers == {}
    (event,) = desk.events
    assert isinstance(event, WorkerEnded)
    assert (event.by, event.exit_code) == (EndedBy.NOT_TAKEN, None)
    assert event.text == "train may not run on a1 because of its own nodeSelector or node affinity"
    assert len(desk.started("b1", attempt=2).to_open()) == 1


async def test_pod_with_other_gpu_request_does_not_start() -> None:
    desk = Desk(pod("train", gpus=2))
    assert desk.started("a1").workers == {}
    (event,) = desk.events
    assert isinstance(event, WorkerEnded)
    assert event.text == "train requests 2 GPUs, but its job 1"


async def test_job_without_pods_does_not_start() -> None:
    desk = Desk(pod("train"))
    desk.seen.put()
    assert desk.started("a1").workers == {}
    (event,) = desk.events
    assert isinstance(event, WorkerEnded)
    assert event.text == "its pods no longer exist"


async def test_gated_pod_keeps_waiting_after_stop() -> None:
    desk = Desk(pod("train"))
    (state,) = desk.started("a1").workers.values()
    assert desk.pods.let_wait(state)
    seen = desk.pods.as_seen(desk.seen.admitted[0].view, False)
    assert seen.job == ""
    state.opened = True
    assert not desk.pods.let_wait(state)


async def test_wait_reason_is_written_once_per_pod() -> None:
    desk = Desk(of_two("w-0"), of_two("w-1"))
    for text in ("no GPU is free", "no GPU is free", "joe is before you"):
        desk.pods.write_reason(desk.job, text)
    async with asyncio.timeout(PATIENCE_S):
        written = [await desk.written.patches.get() for _ in range(4)]
    last = dict(written)
    assert set(last) == {"w-0", "w-1"}
    assert last["w-0"]["metadata"]["annotations"] == {names.REASON: "joe is before you"}
    await desk.queue.close()
    assert desk.written.patches.empty()


def test_admission_patch_labels_pod_and_keeps_managed_fields() -> None:
    desk = Desk(pod("train"))
    state = desk.started("a1").workers[0]
    assert state.pod is not None
    patch = manifests.opening(state.pod, state.node, state.slots, 7)
    assert patch["metadata"]["labels"] == {names.JOB: desk.job, names.ATTEMPT: "1"}
    assert patch["metadata"]["annotations"] == {
        names.SLOTS: "a1/0",
        names.EPOCH: "7",
        names.WORKER: "0",
        names.REASON: None,
    }
    assert "managedFields" not in patch["metadata"]
    (gate,) = patch["spec"]["schedulingGates"]
    assert gate == {"$patch": "delete", "name": names.ADMISSION_GATE}
