"""What a job asks of the pool: the one definition that all floors of the scheduler share.

A submission is a ``JobSpec`` and what to run; the record of a job, the ``TrainingJob`` and the
core's job hold it whole. A new asked field is declared here, and as an option of ``submit`` in
``contract.options``.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from benchpool_scheduler.contract.scalars import (
    Cores,
    Gib,
    GpuCount,
    Name,
    Priority,
    Seconds,
    WorkerCount,
)


class JobSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a job asks of the pool.

    Attributes:
        gpus: GPUs of each worker. ``cpus`` and ``memory_gib`` are per worker too, 0 for no demand.
        workers: Workers of the gang. ``min_workers``: the fewest it may run with, None for all.
        priority: Its turn inside its project; higher goes first.
        preemptible: Whether it may be paused for others; if not it must fit the quota.
        time_limit_s: It is ended after so many seconds; None for no limit.
        gpu_models: The models that it accepts, best first; empty for any (R13).
        required_level: All workers are in one domain of this level of the machine room, or of
            ``node``. ``preferred_level``: if that can be had (R12).
        spread: The workers want nodes of their own, instead of being packed (R12).
    """

    gpus: GpuCount = 1
    workers: WorkerCount = 1
    min_workers: WorkerCount | None = None
    priority: Priority = 50
    preemptible: bool = True
    time_limit_s: Seconds | None = None
    gpu_models: Annotated[tuple[Name, ...], Meta(max_length=32)] = ()
    required_level: Name | None = None
    preferred_level: Name | None = None
    spread: bool = False
    cpus: Cores = 0
    memory_gib: Gib = 0

    def changed(self, **fields: Any) -> JobSpec:
        """Return the same with other values of these fields.

        >>> JobSpec(gpus=2).changed(workers=3).total_gpus
        6
        """
        return structs.replace(self, **fields)

    @property
    def least_workers(self) -> int:
        """The fewest workers that it may run with.

        >>> JobSpec(workers=4).least_workers, JobSpec(workers=4, min_workers=2).least_workers
        (4, 2)
        """
        asked = self.workers if self.min_workers is None else self.min_workers
        return min(asked, self.workers)

    @property
    def total_gpus(self) -> int:
        """GPUs of all workers."""
        return self.gpus * self.workers
