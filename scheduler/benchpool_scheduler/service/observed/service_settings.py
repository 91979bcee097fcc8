"""How the service was set up: given at its start, and the same until its end."""

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
    """What workers ask for whose job names nothing, for each of their GPUs; 0 asks for nothing.

    Attributes:
        cpus: Processor cores. ``memory_gib``: GiB of memory.
    """

    cpus: float = 0.0
    memory_gib: float = 0.0

    def of(self, spec: JobSpec) -> JobSpec:
        """Return what a job asks for with these where it says nothing.

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
        """Return what workers of an attempt have: what they were started with.

        Where that is not known, or without an attempt, it is what is asked for now.
        """
        if attempt is None or attempt.cpus is None or attempt.memory_gib is None:
            return self.of(spec)
        if (attempt.cpus, attempt.memory_gib) == (spec.cpus, spec.memory_gib):
            return spec
        return spec.changed(cpus=attempt.cpus, memory_gib=attempt.memory_gib)


NO_DEFAULTS = DefaultAmounts()


@dataclass(frozen=True, slots=True)
class Containers:
    """Where things are in workers that are containers.

    Attributes:
        home_of: Returns the volume claim of a user's home that any number of pods may mount; None
            for none. ``nodes_for_claim``: where it can be mounted, None for everywhere.
        pinned: Returns the image that a user's notebook runs, by its digest.
        home_path: Where it is mounted.
        python: Runs what names no interpreter.
        objects: Folder of the contents that came with the job. ``output``: of its results.
        backup: A sentence on how a copy is made of what the service cannot copy itself.
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
    """What every part of the service may need of its surroundings.

    Attributes:
        clock: Where times come from. ``new_id``: makes ids of jobs and leases.
        directory: The Hub's users and servers.
        state: The state folder.
        base_url: The service's address for people.
        accounts: ``system`` runs jobs as the system account of their user.
        images: Jobs may name the image they run in.
        containers: Where things are in workers that are containers; None where they are processes
            of the machine.
        environment: What every worker's environment has, by the administrator's allow-list.
        default_amounts: What workers ask for whose job names no cores or no memory.
        notifications_file: What may be sent to people; None for the one in the state folder.
        parker: What parks idle kernels; None where nothing can.
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
