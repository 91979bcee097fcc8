"""Reports of a node's agent: measurements of its GPUs and pods over one interval."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

MOST_GPUS = 512
MOST_PODS = 1024
"""Maximum number of pods in one report. A kubelet runs 110 pods by default."""

Share = Annotated[float, Meta(ge=0, le=1)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]
Bytes = Annotated[int, Meta(ge=0, le=2**60)]
Span = Annotated[
    float, Meta(gt=0, le=3600, description="Length of the interval until the report, in seconds.")
]
Uid = Annotated[str, Meta(min_length=1, max_length=64)]
Name = Annotated[str, Meta(max_length=253)]


class ReportedPod(Struct, frozen=True, forbid_unknown_fields=True):
    """Pod that the kubelet has given a GPU."""

    namespace: Name
    name: Name


class ReportedGpu(Struct, frozen=True, forbid_unknown_fields=True):
    """GPU or GPU slice, as reported by the driver of its node. Null is not measured."""

    uuid: Annotated[str, Meta(min_length=1, max_length=128)]
    resource: Annotated[str, Meta(max_length=128, description="Its resource name in the kubelet.")]
    pods: Annotated[
        list[ReportedPod],
        Meta(max_length=64, description="Pods that hold it; several where it is shared."),
    ] = []
    shared: Annotated[
        bool, Meta(description="The kubelet counts it as several, so that pods can share it.")
    ] = False
    span_s: Span | None = None
    activity: Share | None = None
    sm_activity: Share | None = None
    memory_used_gib: Amount | None = None
    memory_total_gib: Amount | None = None
    power_w: Amount | None = None
    energy_j: Amount | None = None
    temperature_c: Annotated[float, Meta(ge=-100, le=300)] | None = None
    throttled: Annotated[list[Annotated[str, Meta(max_length=40)]], Meta(max_length=16)] = []
    xid: Annotated[int, Meta(ge=0, le=10_000)] | None = None
    parent: Annotated[str, Meta(max_length=128, description="GPU that it is a slice of.")] = ""


class ReportedUse(Struct, frozen=True, forbid_unknown_fields=True):
    """Resource use of one pod, from the kernel's counters of its cgroup."""

    pod: Annotated[Uid, Meta(description="Uid of the pod.")]
    span_s: Span
    cpu_s: Amount
    memory_gib: Amount | None = None
    memory_peak_gib: Amount | None = None
    read_bytes: Bytes | None = None
    written_bytes: Bytes | None = None


class NodeReport(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``report_node``."""

    look: Annotated[
        int,
        Meta(ge=0, le=2**63 - 1, description="Number of the report; a repeat changes nothing."),
    ]
    gpus: Annotated[list[ReportedGpu], Meta(max_length=MOST_GPUS)] = []
    pods: Annotated[
        list[Uid],
        Meta(max_length=MOST_PODS, description="Uid of every pod that has a cgroup on the node."),
    ] = []
    uses: Annotated[list[ReportedUse], Meta(max_length=MOST_PODS)] = []
    problem: Annotated[
        str, Meta(max_length=500, description="What cannot be measured on the node, in a sentence.")
    ] = ""


class NodeReportTaken(Struct, frozen=True):
    """Answer of ``report_node``."""

    every_s: Annotated[float, Meta(description="Seconds until the next report is due.")]
