"""GPUs computed from nodes and pods, with consistent counts."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE, slot
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView
from benchpool_scheduler.runtime.kubernetes.gpu_slots import (
    GpuHolders,
    SteadyCount,
    devices,
    why_not,
)

MIG = "nvidia.com/mig-1g.10gb"


def node(gpus: int, healthy: int | None = None, **more: object) -> NodeView:
    """Return a node with GPUs."""
    has = {GPU_RESOURCE: float(gpus), "cpu": 64.0}
    usable = {GPU_RESOURCE: float(gpus if healthy is None else healthy)}
    facts: dict[str, object] = {
        "name": "n",
        "labels": {},
        "cordoned": False,
        "taints": (),
        "ready": True,
        "why_not_ready": "",
        "capacity": has,
        "allocatable": usable,
    }
    return NodeView(**(facts | more))  # type: ignore[arg-type]


@given(
    capacity=st.integers(0, 16),
    lost=st.integers(0, 16),
    foreign=st.integers(0, 20),
    ours=st.sets(st.integers(0, 15)),
)
def test_slot_states_add_up_and_own_slots_stay_usable(
    capacity: int, lost: int, foreign: int, ours: set[int]
) -> None:
    lost = min(lost, capacity)
    mine = {slot("n", index) for index in ours if index < capacity}
    held = GpuHolders(frozenset(mine), {("n", GPU_RESOURCE): foreign})
    found = devices([node(capacity, capacity - lost)], held, SteadyCount(0.0), 0.0)
    assert [device.uuid for device in found] == [slot("n", index) for index in range(capacity)]
    assert all(d.state is DeviceState.USABLE for d in found if d.uuid in mine)
    states = Counter(device.state for device in found)
    rest = capacity - len(mine)
    assert states[DeviceState.BROKEN] == min(lost, rest)
    assert states[DeviceState.FOREIGN] == min(foreign, rest - min(lost, rest))


def test_mig_slices_are_separate_gpus() -> None:
    sliced = node(
        1,
        capacity={GPU_RESOURCE: 1.0, MIG: 2.0},
        allocatable={GPU_RESOURCE: 1.0, MIG: 2.0},
        labels={
            f"{GPU_RESOURCE}.product": "NVIDIA-A100-SXM4-80GB",
            f"{GPU_RESOURCE}.memory": "81920",
            f"{MIG}.memory": "9856",
        },
    )
    found = devices(
        [sliced], GpuHolders(), SteadyCount(0.0), 0.0, (GPU_RESOURCE, "nvidia.com/mig-")
    )
    assert [(d.uuid, d.model, d.memory_mib, d.resource) for d in found] == [
        ("n/0", "A100-SXM4-80GB", 81920, GPU_RESOURCE),
        ("n/mig-1g.10gb/0", "A100-SXM4-80GB-MIG-1g.10gb", 9856, MIG),
        ("n/mig-1g.10gb/1", "A100-SXM4-80GB-MIG-1g.10gb", 9856, MIG),
    ]


def test_free_slots_of_refusing_node_are_broken() -> None:
    held = GpuHolders(frozenset({"n/0"}), {})
    found = devices([node(2)], held, SteadyCount(0.0), 0.0, refused={"n": "no room"})
    assert [(d.state, d.note) for d in found] == [
        (DeviceState.USABLE, None),
        (DeviceState.BROKEN, "no room"),
    ]


def test_taint_blocks_node_unless_tolerated() -> None:
    tainted = node(1, taints=(("nvidia.com/gpu", "present", "NoSchedule"),))
    bears = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    assert why_not(tainted, bears) is None
    assert why_not(tainted, []) == "n has the taint nvidia.com/gpu=present:NoSchedule"
    other = [{"key": "nvidia.com/gpu", "value": "absent"}]
    assert why_not(tainted, other) is not None
    preferred = node(1, taints=(("slow", "", "PreferNoSchedule"),))
    assert why_not(preferred, []) is None
