"""Reversal of edits to accepted jobs: fields that must not change are put back.

An admission policy rejects such edits once the status shows that a job is accepted. This module
handles edits between the acceptance and that first status, and clusters without the policy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from benchpool_scheduler.kube import Connection
from benchpool_scheduler.resources.declaring import ObjectMeta
from benchpool_scheduler.resources.jobs import FIXED, TRAINING_JOBS, TrainingJobSpec

JOBS = TRAINING_JOBS.kind
_NAMES = dict(
    zip(TrainingJobSpec.__struct_encode_fields__, TrainingJobSpec.__struct_fields__, strict=True)
)


class EditRefused(Struct, frozen=True):
    """Edit that was put back: a sentence, and when (seconds since the epoch)."""

    text: str
    at: float


def changed(accepted: bytes, now: bytes) -> tuple[str, ...]:
    """Return the fixed fields that differ; both arguments are specs as JSON.

    >>> changed(b'{"gpus": 1, "command": ["true"]}', b'{"gpus": 2, "command": ["true"]}')
    ()
    >>> changed(b'{"cpus": 1, "command": ["true"]}', b'{"cpus": 2, "command": ["false"]}')
    ('command', 'cpus')
    """
    one = msgspec.json.decode(accepted, type=TrainingJobSpec)
    two = msgspec.json.decode(now, type=TrainingJobSpec)
    return tuple(it for it in FIXED if getattr(one, _NAMES[it]) != getattr(two, _NAMES[it]))


def refused(fields: Sequence[str]) -> EditRefused:
    """Return the report of an edit of these fields."""
    names = [f"spec.{name}" for name in fields]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    was, stays = ("was", "It stays") if len(names) == 1 else ("were", "They stay")
    text = (
        f"{listed} {was} changed after the job had been accepted, and restored. {stays} as "
        "accepted; delete the job and create another."
    )
    return EditRefused(text, time.time())


async def put_back(
    connection: Connection, namespace: str, name: str, accepted: bytes, version: str
) -> ObjectMeta:
    """Restore the fixed fields of an object's spec; changeable fields stay as they are.

    Args:
        version: The resource version that was edited. Errors: Conflict for another one, NotFound.
    """
    body: dict[str, Any] = await connection.get(JOBS, name, namespace=namespace)
    was: dict[str, Any] = msgspec.json.decode(accepted)
    free = {key: value for key, value in body["spec"].items() if key not in FIXED}
    body["spec"] = free | {key: value for key, value in was.items() if key in FIXED}
    body["metadata"]["resourceVersion"] = version
    answer = await connection.replace(JOBS, name, body, namespace=namespace)
    return msgspec.convert(answer["metadata"], ObjectMeta)
