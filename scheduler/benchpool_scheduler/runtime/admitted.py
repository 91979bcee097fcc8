"""Pods of others that get their GPUs from this pool, as the service sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class AdmittedWorkload:
    """Pods that are let in together: one job of the pool.

    Attributes:
        job: The id that the job has or is to have; the same pods always have the same.
        namespace, owner_kind, owner: What made them; a bare pod is its own owner.
        pods: Their names, by worker.
        user, project: In whose name and from whose quota.
        gpus: What each asks for, with cores and GiB; ``resource`` is what its GPUs are called.
        preemptible: They may be deleted to make room.
        waiting: All of them stand behind our gate.
        problem: Why they cannot be counted, a sentence; empty where they can.
    """

    job: str
    namespace: str
    owner_kind: str
    owner: str
    pods: tuple[str, ...]
    user: str
    project: str
    gpus: int
    cpus: float
    memory_gib: float
    resource: str
    preemptible: bool
    waiting: bool
    problem: str = ""


class Admits(Protocol):
    """What lets in pods that others made."""

    def admitted(self) -> tuple[AdmittedWorkload, ...]:
        """Return those that are there now, and have not ended."""

    async def admitted_changed(self) -> None:
        """Wait until ``admitted`` may tell something new; one consumer."""

    def say(self, job: str, text: str) -> None:
        """Say on the pods of a job that wait why they do; returns at once."""


@runtime_checkable
class AdmittingRuntime(Protocol):
    """A runtime that lets in pods which others made."""

    @property
    def admits(self) -> Admits:
        """What does so."""
