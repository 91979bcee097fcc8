"""Settings of the service, given at its start and constant until its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.hub import Directory
from benchpool_scheduler.runtime import Pinned
from benchpool_scheduler.runtime.parker import Parker
from benchpool_scheduler.service.process.clock import Clock
from benchpool_scheduler.store.records import AttemptRecord


@dataclass(frozen=True, slots=True)
class DefaultAmounts:
    """Default requests of workers per GPU, if their job names none; 0 requests nothing.

    Attributes:
        cpus: Processor cores. ``memory_gib``: GiB of memory.
    """

    cpus: float = 0.0
    memory_gib: float = 0.0

    def of(self, spec: JobSpec) -> JobSpec:
        """Return a job's request, with these defaults for amounts that it does not name.

        >>> asked = DefaultAmounts(cpus=4, memory_gib=16).of(JobSpec(gpus=2, cpus=1))
        >>> asked.cpus, asked.memory_gib
        (1, 32)
        """
        cpus = spec.cpus or self.cpus * spec.gpus
        memory_gib = spec.memory_gib or self.memory_gib * spec.gpus
        if (cpus, memory_gib) == (spec.cpus, spec.memory_gib):
            return spec
        return spec.changed(cpus=cpus, memory_gib=memory_gib)

    def held(self, spec: JobSpec, attempt: AttemptRecord | None) -> JobSpec:
        """Return the request with which the workers of an attempt were started.

        If that is unknown, or without an attempt, it is the present request.
        """
        if attempt is None or attempt.cpus is None or attempt.memory_gib is None:
            return self.of(spec)
        if (attempt.cpus, attempt.memory_gib) == (spec.cpus, spec.memory_gib):
            return spec
        return spec.changed(cpus=attempt.cpus, memory_gib=attempt.memory_gib)


NO_DEFAULTS = DefaultAmounts()


@dataclass(frozen=True, slots=True)
class Containers:
    """Locations in workers that are containers.

    Attributes:
        home_of: Returns the volume claim of a user's home that any number of pods may mount, or
            None. ``nodes_for_claim``: returns the nodes that can mount it, None for all nodes.
        pinned: Returns the image that a user's notebook runs, by its digest.
        home_path: Mount path of the home.
        python: Interpreter for jobs that name none.
        objects: Folder of the files submitted with the job. ``output``: folder of its results.
        backup: A sentence on how to back up data that the service cannot copy itself.
    """

    home_of: Callable[[str], str | None] = lambda user: None
    nodes_for_claim: Callable[[str], frozenset[str] | None] = lambda claim: None
    pinned: Callable[[str, str], Pinned] = lambda user, image: Pinned(image)
    home_path: str = "/home/jovyan"
    python: str = "python3"
    objects: str = "/benchpool/objects"
    output: str = "/benchpool/output"
    backup: str = ""


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings and surroundings for all parts of the service.

    Attributes:
        clock: Source of times. ``new_id``: creates IDs of jobs and leases.
        directory: The Hub's users and servers.
        state: The state folder.
        base_url: The service's address for users.
        accounts: ``system`` runs jobs as the system account of their user.
        images: Jobs may name the image in which they run.
        containers: Locations in workers that are containers, or None for local processes.
        environment: Variables of every worker's environment, by the administrator's allow-list.
        default_amounts: CPUs and memory of workers whose job names none.
        notifications_file: Settings of notifications; None for the file in the state folder.
        parker: Parks idle kernels, or None if that is impossible.
    """

    clock: Clock
    directory: Directory
    state: Path
    new_id: Callable[[], str]
    base_url: str = ""
    accounts: Literal["shared", "system"] = "shared"
    images: bool = False
    containers: Containers | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    default_amounts: DefaultAmounts = NO_DEFAULTS
    notifications_file: Path | None = None
    parker: Parker | None = None

    def job_folder(self, job: str) -> Path:
        """Return the folder of a job."""
        return self.state / "jobs" / job
