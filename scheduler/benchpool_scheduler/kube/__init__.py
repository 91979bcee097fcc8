"""The one door to Kubernetes: nothing else imports its client.

- ``connect`` / ``Connection``: get, list, create, replace, patch, apply, delete, streams; raw JSON
  decoded into the msgspec Structs of the caller; repeated with jitter; typed errors.
- ``Reflector``: list and watch as one async iterator of typed changes, with a trimmed cache.
- ``Election``: who leads, by a Lease; its ``guard`` stops the writes of who does not.
- ``PodTokens``: on which node the pod is that shows a token.
- ``kinds``: the objects that we touch.

It knows nothing of jobs or GPUs.
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
