"""The names by which scheduler, spawner, chart and cluster know each other.

Values of users and projects that Kubernetes would refuse as labels are in annotations; labels hold
ids only. The chart renders the same names; a test holds them against this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

GROUP: Final = "benchpool.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

ADMISSION_GATE: Final = "benchpool.io/admission"
"""Scheduling gate of every GPU pod of ours; only the scheduler removes it (R1)."""

MANAGED: Final = "benchpool.io/managed"
"""Label of namespaces in which nobody may take a GPU without the gate; its value is ``true``."""

ROLE: Final = "benchpool.io/role"
"""Label of pods that get their GPUs from us: ``worker``, ``notebook``, or ``admitted``."""
ROLE_WORKER: Final = "worker"
ROLE_NOTEBOOK: Final = "notebook"
ROLE_ADMITTED: Final = "admitted"
"""A pod that others made in a namespace that an administrator lists."""

JOB: Final = "benchpool.io/job"
"""Label: id of the job (26 characters), on Jobs, Services and pods of an attempt."""
ATTEMPT: Final = "benchpool.io/attempt"
"""Label: number of the attempt, from 1."""
LEASE: Final = "benchpool.io/lease"
"""Label: id of the build lease that a notebook pod holds GPUs by."""
USER: Final = "benchpool.io/user"
"""Annotation: the Hub's name of the user."""
PROJECT: Final = "benchpool.io/project"
"""Annotation: the project's name."""
SLOTS: Final = "benchpool.io/slots"
"""Annotation: which GPU slots of its node a pod was given, as the scheduler counts them."""
EPOCH: Final = "benchpool.io/leader-epoch"
"""Annotation: epoch of the leader that wrote the object last; a writer never lowers it."""

PREEMPTIBLE: Final = "benchpool.io/preemptible"
"""Label of an admitted pod that may be deleted to make room for others: ``true``."""
GROUP_NAME: Final = "benchpool.io/group"
"""Label of admitted pods that start together: the name of their group."""
GROUP_SIZE: Final = "benchpool.io/group-size"
"""Annotation of admitted pods: how many pods their group has."""
WORKER: Final = "benchpool.io/worker"
"""Annotation that an admitted pod gets with its GPUs: which worker of its job it is, from 0."""
REASON: Final = "benchpool.io/reason"
"""Annotation of an admitted pod that waits: why, in a sentence."""

ACCEPTED: Final = "benchpool.io/accepted"
"""Annotation of a TrainingJob that came in through the API: when it was accepted, RFC 3339.

Only the scheduler may write it: a job that has it was checked."""

NODE_AGENT_AUDIENCE: Final = "benchpool-scheduler"
"""What the tokens of nodes' agents are for; they open nothing else."""

GPU_RESOURCE: Final = "nvidia.com/gpu"
FIELD_MANAGER: Final = "benchpool-scheduler"
ELECTION_LEASE: Final = "benchpool-scheduler"


def attempt_name(job: str, attempt: int) -> str:
    """Return the name of the Job and the headless Service of an attempt.

    Two leaders that start the same attempt collide on it instead of starting it twice.

    >>> attempt_name("01hzxk8qj9v4e2c5t7m3n6p8ra", 2)
    'bp-01hzxk8qj9v4e2c5t7m3n6p8ra-2'
    """
    return f"bp-{job}-{attempt}"


def slot(node: str, index: int, resource: str = GPU_RESOURCE) -> str:
    """Return how a GPU of a node is called before the kubelet has chosen a device for it.

    >>> slot("node-a", 3)
    'node-a/3'
    >>> slot("node-a", 0, "nvidia.com/mig-1g.10gb")
    'node-a/mig-1g.10gb/0'
    """
    kind = resource.partition("/")[2]
    return f"{node}/{index}" if resource == GPU_RESOURCE else f"{node}/{kind}/{index}"


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource of the API server.

    Attributes:
        group: Empty for the core group.
        plural: The word in paths.
        kind: The word in objects.
        namespaced: False for objects of the whole cluster.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What objects carry as ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or without a name that of the collection.

        Without a namespace a namespaced collection is that of all namespaces.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            if self.namespaced and namespace is None:
                raise ValueError(f"{self.kind} {name} needs a namespace")
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
