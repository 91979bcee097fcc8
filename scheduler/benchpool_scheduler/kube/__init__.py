"""Access to Kubernetes: the only package that imports its client.

- ``connect`` / ``Connection``: get, list, create, replace, patch, apply, delete, streams. Raw JSON
  is decoded into the msgspec Structs of the caller. Retries with jitter, typed errors.
- ``Reflector``: list and watch as one async iterator of typed changes, with a trimmed cache.
- ``Election``: leader election by a Lease; its ``guard`` stops writes of other replicas.
- ``PodTokens``: the node of the pod that presents a token.
- ``kinds``: the kinds of objects in use.

The package does not depend on jobs or GPUs.
"""

from benchpool_scheduler.kube.connection import (
    Connection,
    Listing,
    Object,
    Patch,
    Precondition,
    connect,
)
from benchpool_scheduler.kube.election import ElectionTiming
from benchpool_scheduler.kube.failures import (
    KubeAlreadyExists,
    KubeConflict,
    KubeFailure,
    KubeForbidden,
    KubeGone,
    KubeInvalid,
    KubeNotFound,
    KubeUnavailable,
)
from benchpool_scheduler.kube.kinds import Kind
from benchpool_scheduler.kube.leader_election import Election, NotLeading
from benchpool_scheduler.kube.pod_tokens import PodTokens as PodTokens
from benchpool_scheduler.kube.reflector import (
    Appeared,
    Change,
    Changed,
    Key,
    Listed,
    Metadata,
    Reflector,
    Vanished,
)
from benchpool_scheduler.kube.retry import ONCE, RetryPolicy

__all__ = [
    "ONCE",
    "Appeared",
    "Change",
    "Changed",
    "Connection",
    "Election",
    "ElectionTiming",
    "Key",
    "Kind",
    "KubeAlreadyExists",
    "KubeConflict",
    "KubeFailure",
    "KubeForbidden",
    "KubeGone",
    "KubeInvalid",
    "KubeNotFound",
    "KubeUnavailable",
    "Listed",
    "Listing",
    "Metadata",
    "NotLeading",
    "Object",
    "Patch",
    "Precondition",
    "Reflector",
    "RetryPolicy",
    "Vanished",
    "connect",
]
