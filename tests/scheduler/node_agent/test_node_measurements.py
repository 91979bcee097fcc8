"""Measurements of a node agent: devices from the kubelet, their use from the driver, pod counters.

The counters of pods come from the kernel. Unknown values are omitted, and no fault ends the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract.node_report import NodeReport, ReportedPod
from benchpool_scheduler.node_agent.kubelet import KubeletSocket
from benchpool_scheduler.node_agent.looking import NodeLooks
from benchpool_scheduler.node_agent.pod_cgroups import find
from benchpool_scheduler.telemetry import GpuSample
from benchpool_support.clocks import FakeClock
from benchpool_support.kubelets import ScriptedKubelet
from benchpool_support.measured import ScriptedSampler

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
POD = "0a1b2c3d-0000-1111-2222-333344445555"
OTHER = "ffffffff-0000-1111-2222-333344445555"


@pytest.fixture
def kubelet() -> ScriptedKubelet:
    return ScriptedKubelet(
        free={GPU: ["GPU-a", "GPU-b"], "example.com/nic": ["eth1"]},
        given={("lab", "train-0", GPU): ["GPU-b"]},
    )


@pytest.fixture
def looks(kubelet: ScriptedKubelet, tmp_path: Path) -> Iterator[tuple[NodeLooks, FakeClock]]:
    clock = FakeClock()
    sampler = ScriptedSampler(
        lambda gpu, now: GpuSample(at=now, span_s=10.0, gpu=gpu, activity=0.25, power_w=100.0)
    )
    with kubelet.serve(tmp_path / "kubelet.sock") as socket:
        looks = NodeLooks(KubeletSocket(socket), sampler, tmp_path / "cgroup", clock.now)
        yield looks, clock
        looks.close()


def counters(folder: Path, cpu_us: int, memory: int, read: int = 0, written: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cpu.stat").write_text(f"usage_usec {cpu_us}\nuser_usec 0\n")
    (folder / "memory.current").write_text(f"{memory}\n")
    (folder / "memory.peak").write_text(f"{2 * memory}\n")
    (folder / "io.stat").write_text(f"8:0 rbytes={read} wbytes={written} rios=1\n")


def held(report: NodeReport) -> dict[str, list[ReportedPod]]:
    return {it.uuid: it.pods for it in report.gpus}


def test_device_is_reported_with_its_pod(looks: tuple[NodeLooks, FakeClock]) -> None:
    report = looks[0].look(7)
    assert report.look == 7
    assert held(report) == {"GPU-a": [], "GPU-b": [ReportedPod("lab", "train-0")]}
    assert [(it.activity, it.power_w, it.span_s) for it in report.gpus] == [(0.25, 100.0, 10.0)] * 2


def test_slices_are_separate_and_shared_devices_unassigned(
    looks: tuple[NodeLooks, FakeClock], kubelet: ScriptedKubelet
) -> None:
    kubelet.free = {SLICE: ["MIG-1", "MIG-2"], GPU: ["GPU-a::0", "GPU-a::1"]}
    kubelet.given = {("lab", "one", GPU): ["GPU-a::0"], ("lab", "two", GPU): ["GPU-a::1"]}
    found = {it.uuid: it for it in looks[0].look(1).gpus}
    assert {name: it.resource for name, it in found.items()} == {
        "MIG-1": SLICE,
        "MIG-2": SLICE,
        "GPU-a": GPU,
    }
    shared = found["GPU-a"]
    assert shared.shared
    assert shared.activity is None
    assert len(shared.pods) == 2


@pytest.mark.parametrize(
    "place",
    [
        "kubepods/burstable/pod{uid}",
        "kubepods/pod{uid}",
        "kubelet/kubepods/besteffort/pod{uid}",
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{slice}.slice",
    ],
)
def test_pod_cgroup_is_found_by_uid(tmp_path: Path, place: str) -> None:
    folder = tmp_path / place.format(uid=POD, slice=POD.replace("-", "_"))
    (folder / "container").mkdir(parents=True)
    (tmp_path / "system.slice" / f"pod{OTHER}").mkdir(parents=True)
    assert find(tmp_path) == {POD: folder}


def test_pod_use_comes_from_kernel_counters(
    looks: tuple[NodeLooks, FakeClock], tmp_path: Path
) -> None:
    at, clock = looks
    folder = tmp_path / "cgroup" / "kubepods" / f"pod{POD}"
    counters(folder, 1_000_000, 1024**3)
    first = at.look(1)
    assert (first.pods, first.uses, first.problem) == ([POD], [], "")  # a span needs two looks
    clock.pass_s(10.0)
    counters(folder, 6_000_000, 2 * 1024**3, read=4096, written=512)
    (use,) = at.look(2).uses
    assert (use.pod, use.span_s, use.cpu_s) == (POD, 10.0, 5.0)
    assert (use.memory_gib, use.memory_peak_gib) == (2.0, 4.0)
    assert (use.read_bytes, use.written_bytes) == (4096, 512)


def test_unresponsive_kubelet_is_reported_and_pods_still_measured(
    looks: tuple[NodeLooks, FakeClock], kubelet: ScriptedKubelet, tmp_path: Path
) -> None:
    counters(tmp_path / "cgroup" / "kubepods" / f"pod{POD}", 1, 1)
    kubelet.broken = True
    report = looks[0].look(1)
    assert report.gpus == []
    assert report.pods == [POD]
    assert "the kubelet does not report the GPUs of pods" in report.problem
    assert "unavailable, it starts" in report.problem
    kubelet.broken = False
    assert looks[0].look(2).problem == ""


def test_missing_pod_cgroups_are_reported_with_searched_folders(
    looks: tuple[NodeLooks, FakeClock], tmp_path: Path
) -> None:
    assert f"below {tmp_path / 'cgroup'}" in looks[0].look(1).problem
