"""Waiting in the status of a ``TrainingJob``: awaited jobs, promised GPUs, estimated start."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from benchpool_scheduler.contract import State
from benchpool_scheduler.resources.declaring import Code, GpuName, NodeName


class AwaitedStatus(Struct, frozen=True, omit_defaults=True):
    """Job, or array with its number of tasks, that this job runs after, and how it ended."""

    job: Code
    name: Annotated[str, Meta(max_length=200)] = ""
    outcome: State | None = None
    tasks: Annotated[int, Meta(ge=0, lt=2**31)] = 0


class PlaceStatus(Struct, frozen=True):
    """GPUs of one node for one worker."""

    node: NodeName
    gpus: Annotated[tuple[GpuName, ...], Meta(max_length=1024)]


class EstimatedStartStatus(Struct, frozen=True, omit_defaults=True):
    """Estimated start as a range. An unknown bound is left out."""

    earliest: datetime | None = None
    likely: datetime | None = None
    latest: datetime | None = None
