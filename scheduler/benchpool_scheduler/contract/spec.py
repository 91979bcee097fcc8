"""Requirements of a job on the pool: the one definition for all layers of the scheduler.

A submission is a ``JobSpec`` and what to run. The record of a job and the core's job contain the
whole ``JobSpec``, and the fields of a ``TrainingJob`` are derived from it. The description of a
field appears in the API reference and in ``kubectl explain``.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from benchpool_scheduler.contract.causes import MOST_RETRIES as MOST_RETRIES
from benchpool_scheduler.contract.causes import EndCause as EndCause
from benchpool_scheduler.contract.hanging import IfHanging as IfHanging
from benchpool_scheduler.contract.scalars import (
    PRIORITY_HELP,
    Cores,
    Gib,
    GpuCount,
    Instant,
    Name,
    Priority,
    Seconds,
    WorkerCount,
)

Tag = Annotated[str, Meta(min_length=1, max_length=63, pattern=r"^[^\s,]+$(?!\n)")]
"""Short label of a job, without spaces and commas."""


JobRef = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"^[a-z0-9][a-z0-9.-]*$(?!\n)")]
"""Id of a job or its first characters; on a cluster also the name of its ``TrainingJob``."""


def _about(text: str, **bounds: Any) -> Meta:
    return Meta(description=text, **bounds)


class Asked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Requirements of a job that a ``TrainingJob`` has in the same fields."""

    gpus: Annotated[GpuCount, _about("GPUs of each worker.")] = 1
    workers: Annotated[WorkerCount, _about("Number of workers, started together.")] = 1
    min_workers: Annotated[
        WorkerCount | None, _about("Smallest number of workers to run with.")
    ] = None
    priority: Annotated[Priority, _about(PRIORITY_HELP)] = 50
    preemptible: Annotated[
        bool, _about("Whether it may be paused for others; if not, it must fit the quota.")
    ] = True
    time_limit_s: Annotated[Seconds | None, _about("Time limit of an attempt.")] = None
    gpu_models: Annotated[
        tuple[Name, ...],
        _about("Accepted GPU models, best first; empty accepts all.", max_length=32),
    ] = ()
    spread: Annotated[bool, _about("Each worker on a node of its own where possible.")] = False
    tags: Annotated[
        tuple[Tag, ...], _about("Short label to find the job by; at most 16.", max_length=16)
    ] = ()
    after: Annotated[
        tuple[JobRef, ...],
        _about(
            "Jobs or whole arrays that must have succeeded before it joins the queue.",
            max_length=64,
        ),
    ] = ()
    after_any: Annotated[
        bool, _about("It joins the queue when those jobs have ended, with any outcome.")
    ] = False
    cpus: Annotated[Cores, _about("Processor cores of each worker.")] = 0
    memory_gib: Annotated[Gib, _about("Memory of each worker, GiB.")] = 0
    retries: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_RETRIES)] | None,
        _about("Maximum number of retries after failures of each cause; 0 for none."),
    ] = None
    retry_on: Annotated[
        tuple[EndCause, ...],
        _about("Cause of failure that is retried, and no other.", max_length=len(EndCause)),
    ] = ()
    if_hanging: Annotated[
        IfHanging | None,
        _about("Action when it shows no activity for long: `tell`, `requeue` or `nothing`."),
    ] = None
    deadline: Annotated[
        Instant | None,
        _about("Deadline. benchpool reports whether it will be met; the order of jobs stays."),
    ] = None


SELF_TEST = "self-test"
"""Tag of the jobs that test a new start. They appear in no list or history."""


class JobSpec(Asked, frozen=True, kw_only=True):
    """All requirements of a job on the pool."""

    required_level: Annotated[
        Name | None, _about("All workers in one domain of this level, or the job waits (R12).")
    ] = None
    preferred_level: Annotated[
        Name | None, _about("All workers in one domain of this level, where possible.")
    ] = None

    @property
    def spec(self) -> JobSpec:
        """Return the requirements of a submission, without what to run."""
        return JobSpec(**{name: getattr(self, name) for name in JobSpec.__struct_fields__})

    def changed(self, **fields: Any) -> JobSpec:
        """Return a copy with other values of these fields.

        >>> JobSpec(gpus=2).changed(workers=3).total_gpus
        6
        """
        return structs.replace(self, **fields)

    @property
    def least_workers(self) -> int:
        """Return the minimum number of workers that it may run with.

        >>> JobSpec(workers=4).least_workers, JobSpec(workers=4, min_workers=2).least_workers
        (4, 2)
        """
        least, most = self.min_workers, self.workers
        return most if least is None or least > most else least

    @property
    def total_gpus(self) -> int:
        """Return the number of GPUs of all workers."""
        return self.gpus * self.workers
