"""Opening of admission gates: all waiting pods of a gang together, or none (R10)."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime import WorkerId
from benchpool_scheduler.runtime.kubernetes import manifests
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptState, WorkerState
from benchpool_scheduler.runtime.kubernetes.cluster_views import PodView, keep_pod
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawPod
from benchpool_support.pods import pause

STATES = st.sampled_from(["no pod", "gated", "opened", "running", "stopping", "over"])


def pod(*gates: str) -> PodView:
    """Return a pod with these gates."""
    body = {
        "metadata": {"name": "p", "uid": "u", "resourceVersion": "7"},
        "spec": {"schedulingGates": [{"name": gate} for gate in gates]},
    }
    return keep_pod(msgspec.convert(body, RawPod))


def worker_in(index: int, state: str) -> WorkerState:
    """Return a worker in a state."""
    made = WorkerState(WorkerId("j", 1, index), "n", (f"n/{index}",))
    match state:
        case "gated" | "stopping":
            made.pod = pod(names.ADMISSION_GATE)
        case "opened":
            made.pod, made.opened = pod(names.ADMISSION_GATE), True
        case "running":
            made.pod = pod()
    made.asked = pause() if state == "stopping" else None
    made.over = state == "over"
    return made


@given(st.lists(STATES, min_size=1, max_size=6))
def test_gang_opens_completely_or_stays_closed(states: list[str]) -> None:
    attempt = AttemptState("j", 1, 0.0, uid="u", size=len(states), wanted=len(states))
    attempt.workers = {index: worker_in(index, state) for index, state in enumerate(states)}
    opening = {one.worker.worker for one in attempt.to_open()}
    waiting = {index for index, state in enumerate(states) if state == "gated"}
    held_up = {"no pod", "stopping"} & set(states)
    assert opening == (set() if held_up else waiting)


def test_gang_stays_closed_while_job_is_smaller() -> None:
    attempt = AttemptState("j", 1, 0.0, uid="u", size=1, wanted=2)
    attempt.workers = {index: worker_in(index, "gated") for index in range(2)}
    assert attempt.to_open() == []


def test_only_closed_admission_gate_is_removed() -> None:
    change = manifests.opening(pod("other", names.ADMISSION_GATE), "n", ("n/0",), 3)
    assert (change["metadata"]["uid"], change["metadata"]["resourceVersion"]) == ("u", "7")
    gone = {"$patch": "delete", "name": names.ADMISSION_GATE}
    assert change["spec"]["schedulingGates"] == [gone]
    with pytest.raises(ValueError, match="not in"):
        manifests.opening(pod("other"), "n", (), 3)


def test_existing_affinity_of_pod_is_kept() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    other = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["x"]}]}
    before = {
        "podAntiAffinity": {"kept": True},
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": ["kept"],
            manifests.REQUIRED: {"nodeSelectorTerms": [term, other]},
        },
    }
    wanted = replace(pod(names.ADMISSION_GATE), affinity=before)
    after = manifests.opening(wanted, "n", (), 3)["spec"]["affinity"]
    assert after["podAntiAffinity"] == {"kept": True}
    of_nodes = after["nodeAffinity"]
    assert of_nodes["preferredDuringSchedulingIgnoredDuringExecution"] == ["kept"]
    terms = of_nodes[manifests.REQUIRED]["nodeSelectorTerms"]
    assert terms[0]["matchExpressions"] == term["matchExpressions"]
    assert [len(one["matchFields"]) for one in terms] == [1, 2]
    assert before["nodeAffinity"][manifests.REQUIRED] == {"nodeSelectorTerms": [term, other]}  # type: ignore[index]
