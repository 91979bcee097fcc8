"""How the service was set up: given at its start, and the same until its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchpool_scheduler.hub import Directory
from benchpool_scheduler.runtime import Pinned
from benchpool_scheduler.service.process.clock import Clock


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
    """

    home_of: Callable[[str], str | None] = lambda user: None
    nodes_for_claim: Callable[[str], frozenset[str] | None] = lambda claim: None
    pinned: Callable[[str, str], Pinned] = lambda user, image: Pinned(image)
    home_path: str = "/home/jovyan"
    python: str = "python3"
    objects: str = "/benchpool/objects"
    output: str = "/benchpool/output"


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

    def job_folder(self, job: str) -> Path:
        """Return the folder of a job."""
        return self.state / "jobs" / job
