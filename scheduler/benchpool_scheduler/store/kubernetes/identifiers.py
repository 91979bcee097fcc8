"""IDs of jobs that users create as objects: their UID in base 32, like every job ID."""

from __future__ import annotations

import base64
from uuid import UUID


def id_of(uid: str) -> str:
    """Return the job ID of the object with this UID.

    >>> id_of("6f1c2d34-0000-4000-8000-00000000000a")
    'n4oc2naaabaabaaaaaaaaaaabi'
    """
    return base64.b32encode(UUID(uid).bytes).decode().rstrip("=").lower()
