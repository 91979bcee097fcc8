"""Pods created outside benchpool that get their GPUs from this pool, as the service sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class AdmittedWorkload:
    """Pods that are admitted together: one job of the pool.

    Attributes:
        job: The job's ID, now or once it exists; the same pods always have the same ID.
        namespace, owner_kind, owner: The object that created the pods; a bare pod owns itself.
        pods: Names of the pods, by worker.
        user, project: User of the job, and project whose quota it uses.
        gpus: GPUs that each pod requests; ``cpus`` and ``memory_gib`` likewise. ``resource`` is
            the resource name of the GPUs.
        preemptible: Whether the pods may be deleted to free GPUs for a claimant.
        waiting: Whether the scheduling gate of every pod is closed.
        problem: Why the pods cannot be counted, as a sentence; empty if they can.
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
    """Admission of pods created outside benchpool."""

    def admitted(self) -> tuple[AdmittedWorkload, ...]:
        """Return the workloads that exist now and have not ended."""

    async def admitted_changed(self) -> None:
        """Wait until ``admitted`` may have changed; one consumer."""

    def write_reason(self, job: str, text: str) -> None:
        """Write the reason for waiting to the waiting pods of a job; returns at once."""


@runtime_checkable
class AdmittingRuntime(Protocol):
    """Runtime that admits pods created outside benchpool."""

    @property
    def admits(self) -> Admits:
        """Return the admission of such pods."""
