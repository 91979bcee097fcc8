"""Settings of the site for its cluster; frozen, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import AdmittedNamespace
from benchpool_scheduler.runtime.kubernetes.workload_hints import NoHints, WorkloadHints

DEFAULT_SIZE = "20Gi"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Settings of workers on this cluster.

    Attributes:
        namespace: Namespace of the pods of jobs.
        image: Default image of jobs; like every image of a job it needs Python 3.10 or newer.
        agent_image: Image with the agent at ``agent_path``; it is copied into the worker's pod.
        agent_url: Address of the scheduler for agents, up to and including ``/workers``.
        run_as: User and group ID of the processes in a pod.
        pull_policy, pull_secrets: For images of jobs and of the agent.
        tolerations: Tolerations of benchpool's pods, as in Kubernetes. Nodes with other taints are
            not ready for them.
        scratch, shm: Sizes of the scratch folder and of ``/dev/shm``.
        cpu_limit: CPU limit as a multiple of the request, at least 1; 0 for no limit.
        priority_class: Priority class of worker pods; empty for the cluster's default.
        gpu_prefixes: Beginnings of the names of resources that count GPUs or MIG slices.
        unschedulable_s: Timeout for a pod that its node rejects, in seconds.
        pull_s: Timeout for an image that cannot be pulled, in seconds.
        prepare_s: Timeout for a pod that does not begin, e.g. without its volume, in seconds.
        refused_s: Seconds for which a node that rejected several jobs gets no other one. The time
            doubles with each repetition.
        dip_s: GPUs that a node does not report for less than this are not lost, in seconds.
        keep_ended_s: Time for which objects of an ended attempt are kept, in seconds.
        carry_bytes: Most bytes of a checkpoint or of results sent through the scheduler.
        log_bytes: Size limit of one worker's log, in bytes.
        scheduler_namespace, scheduler_labels: Namespace and labels of the scheduler's own pods.
            Only these pods reach the ports of services. Without labels there is no such policy.
        listen: Address on which programs of services listen: every address of their pod.
        admitted_namespaces: Namespaces in which pods created outside benchpool get GPUs from it.
        workload_hints: Metadata of Jobs for a cluster that schedules workloads itself.
    """

    namespace: str
    image: str
    agent_image: str
    agent_url: str
    agent_path: str = "/opt/benchpool/agent.pyz"
    run_as: tuple[int, int] = (1000, 100)
    pull_policy: str = "IfNotPresent"
    pull_secrets: Sequence[str] = ()
    tolerations: Sequence[Mapping[str, str]] = field(
        default_factory=lambda: ({"key": "nvidia.com/gpu", "operator": "Exists"},)
    )
    scratch: str = DEFAULT_SIZE
    shm: str = "8Gi"
    cpu_limit: float = 0.0
    priority_class: str = ""
    gpu_prefixes: tuple[str, ...] = ("nvidia.com/gpu", "nvidia.com/mig-")
    unschedulable_s: float = 20.0
    pull_s: float = 120.0
    prepare_s: float = 900.0
    refused_s: float = 60.0
    dip_s: float = 15.0
    keep_ended_s: float = 300.0
    carry_bytes: int = 2 * 1024**3
    log_bytes: int = 64 * 1024**2
    scheduler_namespace: str = ""
    scheduler_labels: Mapping[str, str] = field(default_factory=dict)
    listen: str = "0.0.0.0"  # noqa: S104 (of its own pod)
    admitted_namespaces: tuple[AdmittedNamespace, ...] = ()
    workload_hints: WorkloadHints = field(default_factory=NoHints)
