"""Reports of nodes become samples of slots, workers and benches, identified by objects."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.node_report import (
    NodeReport,
    ReportedGpu,
    ReportedPod,
    ReportedUse,
)
from benchpool_scheduler.telemetry import NO_HOLDER, GpuSample
from benchpool_scheduler.telemetry.node_reports import NodePod, NodeReports
from benchpool_scheduler.telemetry.sampler import HeldProcesses
from benchpool_scheduler.worker.worker_id import WorkerId

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
WORKER, LEASE = WorkerId("job", 1, 0), "lease"
PODS = [
    NodePod("lab", "train-0", "uid-train", "n0", ("n0/2",), WORKER),
    NodePod("lab", "jupyter-joe", "uid-joe", "n0", ("n0/0",), LEASE),
]
SLOTS = ["n0/0", "n0/1", "n0/2", "n0/mig-1g.10gb/0", "n1/0"]
TRAIN, JOE = ReportedPod("lab", "train-0"), ReportedPod("lab", "jupyter-joe")


def gpu(uuid: str, activity: float, *pods: ReportedPod, resource: str = GPU) -> ReportedGpu:
    return ReportedGpu(uuid, resource, list(pods), span_s=10.0, activity=activity)


def reports(pods: Sequence[NodePod] = PODS) -> NodeReports:
    return NodeReports(lambda: pods, 10.0)


def taken(at: NodeReports, *gpus: ReportedGpu, pods: Sequence[str] = ()) -> dict[str, GpuSample]:
    at.take("n0", NodeReport(1, list(gpus), list(pods)), 100.0)
    return {it.gpu: it for it in at.sample(SLOTS, 101.0, {})}


def problem(at: NodeReports, now: float) -> str | None:
    at.sample(SLOTS, now, {})
    return at.problem


def test_device_maps_to_slot_of_kubelet_pod() -> None:
    found = taken(reports(), gpu("GPU-a", 0.1, TRAIN), gpu("GPU-b", 0.2, JOE), gpu("GPU-c", 0.0))
    assert {slot: it.activity for slot, it in found.items()} == {
        "n0/2": 0.1,
        "n0/0": 0.2,
        "n0/1": 0.0,
    }
    assert [found[slot].of for slot in ("n0/2", "n0/0", "n0/1")] == [WORKER, LEASE, None]
    assert {it.at for it in found.values()} == {100.0}


def test_recreated_pod_with_same_name_is_unknown() -> None:
    found = taken(reports(), gpu("GPU-a", 0.9, JOE), pods=["uid-train", "uid-of-a-later-joe"])
    assert {slot: it.of for slot, it in found.items()} == {"n0/0": None}
    # Its device belongs to no pod of the pool, and therefore takes a remaining slot.


def test_slice_takes_slot_of_its_kind() -> None:
    assert set(taken(reports(), gpu("MIG-1", 0.5, resource=SLICE))) == {"n0/mig-1g.10gb/0"}


def test_shared_device_is_assigned_to_no_pod() -> None:
    both = gpu("GPU-a", 0.5, TRAIN, JOE)
    parts = ReportedGpu("GPU-b", GPU, [TRAIN], shared=True, span_s=10.0, activity=0.5)
    assert taken(reports(), both, parts) == {}


def test_first_report_has_no_span_and_repeat_counts_once() -> None:
    at = reports()
    assert taken(at, ReportedGpu("GPU-a", GPU, [TRAIN])) == {}
    report = NodeReport(2, [gpu("GPU-a", 0.5, TRAIN)])
    at.take("n0", report, 110.0)
    at.take("n0", report, 111.0)
    assert len(at.sample(SLOTS, 112.0, {})) == 1
    assert at.sample(SLOTS, 122.0, {}) == []  # no new report: a gap, not idle time


def test_workers_and_benches_are_identified_by_pod_uid() -> None:
    at = reports()
    uses = [
        ReportedUse(pod, 10.0, cpu_s, memory_gib=1.5, read_bytes=7)
        for pod, cpu_s in (("uid-train", 25.0), ("uid-joe", 0.5), ("uid-of-others", 9.0))
    ]
    at.take("n0", NodeReport(1, pods=[it.pod for it in uses], uses=uses), 100.0)
    held = [HeldProcesses(WORKER, NO_HOLDER, (), 8.0), HeldProcesses(LEASE, NO_HOLDER, (), 0.0)]
    found = {it.of: it for it in at.sample_workers(held, 101.0)}
    assert {of: (it.cpu_s, it.cpus) for of, it in found.items()} == {
        WORKER: (25.0, 8.0),
        LEASE: (0.5, 0.0),
    }
    assert (found[WORKER].memory_gib, found[WORKER].read_bytes, found[WORKER].span_s) == (
        1.5,
        7,
        10.0,
    )
    assert at.sample_workers(held, 111.0) == []


def test_silent_node_is_named_with_remedy() -> None:
    at = reports()
    assert problem(at, 100.0) is None  # the agents begin
    at.take("n0", NodeReport(1, problem="The driver hangs."), 150.0)
    silent = problem(at, 161.0) or ""
    assert "not measured on n1:" in silent
    assert "more than 60 s" in silent
    assert "kubectl get pods -A -l app.kubernetes.io/component=node-agent" in silent
    at.take("n1", NodeReport(1), 162.0)
    assert problem(at, 163.0) == "On n0: The driver hangs."


def test_flooding_agent_displaces_no_other_reports() -> None:
    at = reports()
    at.take("n1", NodeReport(1, [gpu("GPU-z", 0.5)]), 99.0)
    for look in range(50):
        at.take("n0", NodeReport(look, [gpu("GPU-a", 0.5, TRAIN)]), 100.0 + look)
    found = at.sample(SLOTS, 160.0, {})
    assert [it.at for it in found if it.gpu == "n0/2"] == [142.0 + n for n in range(8)]
    assert [it.gpu for it in found if it.gpu != "n0/2"] == ["n1/0"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GPU-a", "GPU-b", "GPU-c", "GPU-d", "GPU-e"]),
            st.lists(st.sampled_from([TRAIN, JOE, ReportedPod("else", "x")]), max_size=2),
        ),
        max_size=8,
        unique_by=lambda it: it[0],
    ),
    st.sampled_from([(), ("uid-train",), ("uid-train", "uid-joe")]),
)
@pytest.mark.parametrize("slots", [SLOTS, SLOTS[:1], []])
def test_device_is_counted_once_for_its_kubelet_pod(
    slots: list[str], devices: list[tuple[str, list[ReportedPod]]], there: tuple[str, ...]
) -> None:
    at = reports()
    shares = {uuid: (number + 1) / 10 for number, (uuid, _) in enumerate(devices)}
    gpus = [gpu(uuid, shares[uuid], *pods) for uuid, pods in devices]
    at.take("n0", NodeReport(1, gpus, list(there)), 100.0)
    found = at.sample(slots, 101.0, {})
    assert len({it.gpu for it in found}) == len(found)
    assert len({it.activity for it in found}) == len(found)  # no device is in two slots
    assert sum(it.active_s or 0.0 for it in found) <= sum(shares.values()) * 10.0 + 1e-9
    by_share = {share: uuid for uuid, share in shares.items()}
    named = dict(devices)
    uids = {WORKER: ("uid-train", TRAIN), LEASE: ("uid-joe", JOE)}
    for it in found:
        if it.of is not None:
            uid, pod = uids[it.of]
            assert named[by_share[it.activity or 0.0]] == [pod]
            assert not there or uid in there
