"""Names that scheduler, spawner, chart and cluster share.

Values of users and projects that are invalid as Kubernetes labels are stored in annotations. Labels
hold ids only. The chart renders the same names, and a test compares them with this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

GROUP: Final = "benchpool.io"
VERSION: Final = "v1"
API_VERSION: Final = f"{GROUP}/{VERSION}"

ADMISSION_GATE: Final = "benchpool.io/admission"
"""Scheduling gate of every benchpool pod with GPUs. Only the scheduler removes it (R1)."""

MANAGED: Final = "benchpool.io/managed"
"""Label of namespaces that require the gate for every pod with GPUs; its value is ``true``."""

ROLE: Final = "benchpool.io/role"
"""Label of pods that get their GPUs from benchpool: ``worker``, ``notebook``, or ``admitted``."""
ROLE_WORKER: Final = "worker"
ROLE_NOTEBOOK: Final = "notebook"
ROLE_ADMITTED: Final = "admitted"
"""Role of a foreign pod in a namespace that an administrator lists."""

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
"""Label of an admitted pod that may be preempted: ``true``."""
GROUP_NAME: Final = "benchpool.io/group"
"""Label of admitted pods that start together: the name of their group."""
GROUP_SIZE: Final = "benchpool.io/group-size"
"""Annotation of admitted pods: how many pods their group has."""
WORKER: Final = "benchpool.io/worker"
"""Annotation that an admitted pod gets with its GPUs: which worker of its job it is, from 0."""
REASON: Final = "benchpool.io/reason"
"""Annotation of a waiting admitted pod: its reason, as a sentence."""

ACCEPTED: Final = "benchpool.io/accepted"
"""Annotation of a TrainingJob that was submitted by the API: when it was accepted, RFC 3339.

Only the scheduler may write it: it marks a job that was checked.
"""

NODE_AGENT_AUDIENCE: Final = "benchpool-scheduler"
"""Audience of the tokens of node agents. The tokens are valid for nothing else."""

GPU_RESOURCE: Final = "nvidia.com/gpu"
FIELD_MANAGER: Final = "benchpool-scheduler"
ELECTION_LEASE: Final = "benchpool-scheduler"


def attempt_name(job: str, attempt: int) -> str:
    """Return the name of the Job and the headless Service of an attempt.

    Two leaders that start the same attempt collide on the name instead of starting it twice.

    >>> attempt_name("01hzxk8qj9v4e2c5t7m3n6p8ra", 2)
    'bp-01hzxk8qj9v4e2c5t7m3n6p8ra-2'
    """
    return f"bp-{job}-{attempt}"


def slot(node: str, index: int, resource: str = GPU_RESOURCE) -> str:
    """Return the name of a GPU slot of a node before the kubelet has chosen a device for it.

    >>> slot("node-a", 3)
    'node-a/3'
    >>> slot("node-a", 0, "nvidia.com/mig-1g.10gb")
    'node-a/mig-1g.10gb/0'
    """
    kind = resource.partition("/")[2]
    return f"{node}/{index}" if resource == GPU_RESOURCE else f"{node}/{kind}/{index}"


@dataclass(frozen=True, slots=True)
class Kind:
    """Resource type of the API server.

    Attributes:
        group: API group, empty for the core group.
        plural: Name in paths.
        kind: Name in objects.
        namespaced: False for cluster-wide objects.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """Return the ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or of the collection without a name.

        Without a namespace, the path of a namespaced collection covers all namespaces.
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
