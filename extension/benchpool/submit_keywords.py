"""Options of ``submit`` as keywords; written by docs/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypedDict


class HasId(Protocol):
    """A job that was sent, as ``benchpool.submit`` returns it."""

    @property
    def id(self) -> str: ...


class SubmitKeywords(TypedDict, total=False):
    """Keyword options of ``benchpool.submit`` with their types; its help has the meanings."""

    gpus: int
    workers: int
    min_workers: int | None
    project: str | None
    name: str | None
    priority: int
    preemptible: bool
    time_limit: int | str | None
    deadline: datetime | str | None
    gpu_models: Sequence[str]
    level: str | None
    prefer_level: str | None
    spread: bool
    after: HasId | str | Sequence[HasId | str]
    after_any: bool
    cpus: float
    memory_gib: float
    image: str | None
    env: Mapping[str, str] | None
    parameters: Mapping[str, object] | None
    tags: Sequence[str]
    retries: int | None
    retry_on: Sequence[str]
    if_hanging: str | None
