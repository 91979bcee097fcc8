"""What happened, for readers of server-sent events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Event:
    """One event: ``data`` is JSON, ``seq`` grows over restarts of the service.

    ``job``: data is a ``contract.Job``. ``pool``: the pool changed; data has ``text``, ``counts``,
    ``queue_length`` and ``running`` of ``contract.Status``. ``deleted``: ``contract.JobDeleted``.
    ``reset``: ask for everything again.
    """

    seq: int
    kind: Literal["job", "pool", "deleted", "reset"]
    data: bytes
