"""The one door to Kubernetes: nothing else imports its client.

- ``connect`` / ``Connection``: get, list, create, replace, patch, apply, delete, streams; raw JSON
  decoded into the msgspec Structs of the caller; repeated with jitter; typed errors.
- ``Reflector``: list and watch as one async iterator of typed changes, with a trimmed cache.
- ``Election``: who leads, by a Lease; its ``guard`` stops the writes of who does not.
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
from benchpool_scheduler.kube.election import Timing
from benchpool_scheduler.kube.failures import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeFailure,
    KubeUnavailable,
    NotFound,
)
from benchpool_scheduler.kube.kinds import Kind
from benchpool_scheduler.kube.leading import Election, NotLeading
from benchpool_scheduler.kube.patience import ONCE, Patience
from benchpool_scheduler.kube.watching import (
    Appeared,
    Change,
    Changed,
    Key,
    Listed,
    Metadata,
    Reflector,
    Vanished,
)

__all__ = [
    "ONCE",
    "AlreadyExists",
    "Appeared",
    "Change",
    "Changed",
    "Conflict",
    "Connection",
    "Election",
    "Forbidden",
    "Gone",
    "Invalid",
    "Key",
    "Kind",
    "KubeFailure",
    "KubeUnavailable",
    "Listed",
    "Listing",
    "Metadata",
    "NotFound",
    "NotLeading",
    "Object",
    "Patch",
    "Patience",
    "Precondition",
    "Reflector",
    "Timing",
    "Vanished",
    "connect",
]
