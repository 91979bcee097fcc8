"""What a site says about its cluster; frozen, read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import AdmittedNamespace
from benchpool_scheduler.runtime.kubernetes.workload_hints import NoHints, WorkloadHints

DEFAULT_SIZE = "20Gi"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """How workers run on this cluster.

    Attributes:
        namespace: Where the pods of jobs are.
        image: Of jobs that name none; it needs Python 3.10 or newer, as every image of a job does.
        agent_image: Holds the agent at ``agent_path``; it is copied into the worker's pod.
        agent_url: Where agents reach the scheduler, up to and with ``/workers``.
        run_as: User and group id of the processes in a pod.
        pull_policy, pull_secrets: For images of jobs and of the agent.
        tolerations: Taints that our pods bear, as Kubernetes writes them; nodes with others are
            not ready for us.
        scratch, shm: Sizes of the scratch folder and of ``/dev/shm``.
        cpu_limit: Limit of cores in times of what is asked for, 1 at least; 0 for none.
        priority_class: Of worker pods; empty for the cluster's default.
        gpu_prefixes: How resources begin that count GPUs or slices of them.
        unschedulable_s: A pod that its node refuses for so long is given back.
        pull_s: The same for an image that cannot be pulled.
        prepare_s: The same for a pod that does not begin, e.g. because a volume is missing.
        refused_s: A node that refused several jobs gets no other one for so long, then twice as
            long.
        dip_s: GPUs that a node does not report for less than this are not lost.
        keep_ended_s: Objects of an ended attempt are kept for so long.
        carry_bytes: Most bytes of a checkpoint or of results that travel through the scheduler.
        log_bytes: Bound of one worker's log.
        scheduler_namespace, scheduler_labels: Where the scheduler's own pods are, and by what they
            are known: they alone reach the ports of services. Without labels no policy says so.
        listen: On what programs of services listen: every address of their pod.
        admitted_namespaces: Those in which pods of others get their GPUs from us.
        workload_hints: What Jobs tell a cluster that schedules workloads itself.
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
