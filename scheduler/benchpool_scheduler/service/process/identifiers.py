"""IDs of jobs and leases: 128 random bits as 26 characters [a-z2-7] of base 32."""

from __future__ import annotations

import base64
import secrets


def new_job_id() -> str:
    """Return a new ID.

    >>> len(new_job_id()), new_job_id() == new_job_id()
    (26, False)
    """
    return base64.b32encode(secrets.token_bytes(16)).decode().rstrip("=").lower()
