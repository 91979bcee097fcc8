"""Pods of others get a node and GPUs by their gate; what waits is told why, and never deleted."""

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
    """Return a pod of a group of two."""
    return pod(name, labels={names.GROUP_NAME: "g"}, annotations={names.GROUP_SIZE: "2"})


class Written:
    """A connection that notes what is patched."""

    def __init__(self) -> None:
        self.patches: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def patch(self, kind: kinds.Kind, name: str, change: Any, **_: Any) -> None:
        """Note it."""
        self.patches.put_nowait((name, change))


class Seen:
    """What is known of the cluster: these pods, and nodes in zones by their first letter."""

    def __init__(self, *pods: AdmittedPod) -> None:
        self.admitted = list(pods)
        self.admitted_changes = 1
        self.admitted_news = asyncio.Event()

    def put(self, *pods: AdmittedPod) -> None:
        """Let these be there."""
        self.admitted = list(pods)
        self.admitted_changes += 1

    def node(self, name: str) -> NodeView:
        """Return a node that is ready."""
        return NodeView(name, {"zone": name[0]}, False, (), True, "", {}, {})


class Desk:
    """What lets pods in, with what it is told and what it tells."""

    def __init__(self, *pods: AdmittedPod) -> None:
        self.written = Written()
        self.seen = Seen(*pods)
        self.told: list[WorkerEvent] = []
        self.queue = WorkQueue()
        self.pods = AdmittedPods(
            cast(Connection, self.written),
            SETTINGS,
            cast(Informers, self.seen),
            self.queue,
            self.told.append,
        )
        (self.job,) = (one.job for one in self.pods.admitted()) if pods else ("",)

    def started(self, *nodes: str, attempt: int = 1) -> AttemptState:
        """Give the workers of the job these nodes."""
        state = AttemptRegistry().attempt(self.job, attempt, 0.0)
        state.wanted = len(nodes)
        for index, node in enumerate(nodes):
            worker = WorkerId(self.job, attempt, index)
            gpus = (f"{node}/{index}",)
            launch = Launch(worker, (), {}, gpus, None, nodes=nodes, admitted=True)
            self.pods.bind(state, launch)
        return state


async def test_a_pod_is_the_worker_of_its_job_and_opens_at_once() -> None:
    desk = Desk(pod("train"))
    attempt = desk.started("a1")
    (opening,) = attempt.to_open()
    assert (opening.node, opening.slots) == ("a1", ("a1/0",))
    assert opening.pod is not None
    assert (opening.pod.job, opening.pod.attempt, opening.pod.index) == (desk.job, 1, 0)


async def test_a_group_opens_when_all_of_it_has_its_nodes() -> None:
    desk = Desk(of_two("w-0"), of_two("w-1"))
    attempt = desk.started("a1", "b1")
    assert attempt.whole
    assert [one.node for one in attempt.to_open()] == ["a1", "b1"]


async def test_a_node_that_the_pod_does_not_allow_is_told_as_one_that_did_not_take_it() -> None:
    desk = Desk(pod("train", nodeSelector={"zone": "b"}))
    assert desk.started("a1").workers == {}
    (told,) = desk.told
    assert isinstance(told, WorkerEnded)
    assert (told.by, told.exit_code) == (EndedBy.NOT_TAKEN, None)
    assert told.text == "train may not be on a1 by its own nodeSelector or node affinity"
    assert len(desk.started("b1", attempt=2).to_open()) == 1


async def test_a_pod_that_asks_for_other_gpus_than_its_job_does_not_start() -> None:
    desk = Desk(pod("train", gpus=2))
    assert desk.started("a1").workers == {}
    (told,) = desk.told
    assert isinstance(told, WorkerEnded)
    assert told.text == "train asks for 2 GPUs, and its job for 1"


async def test_a_job_whose_pods_are_gone_does_not_start() -> None:
    desk = Desk(pod("train"))
    desk.seen.put()
    assert desk.started("a1").workers == {}
    (told,) = desk.told
    assert isinstance(told, WorkerEnded)
    assert told.text == "its pods are not there any more"


async def test_what_is_told_to_stop_behind_its_gate_goes_on_waiting() -> None:
    desk = Desk(pod("train"))
    (state,) = desk.started("a1").workers.values()
    assert desk.pods.let_wait(state)
    seen = desk.pods.as_seen(desk.seen.admitted[0].view, False)
    assert seen.job == ""
    state.opened = True
    assert not desk.pods.let_wait(state)


async def test_why_it_waits_is_written_once_on_each_pod() -> None:
    desk = Desk(of_two("w-0"), of_two("w-1"))
    for text in ("no GPU is free", "no GPU is free", "joe is before you"):
        desk.pods.say(desk.job, text)
    async with asyncio.timeout(PATIENCE_S):
        written = [await desk.written.patches.get() for _ in range(4)]
    last = dict(written)
    assert set(last) == {"w-0", "w-1"}
    assert last["w-0"]["metadata"]["annotations"] == {names.REASON: "joe is before you"}
    await desk.queue.close()
    assert desk.written.patches.empty()


def test_the_patch_that_opens_it_says_whose_it_is_and_leaves_others_books_alone() -> None:
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
