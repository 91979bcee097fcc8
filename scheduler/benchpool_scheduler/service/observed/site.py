"""Where the service runs and by which settings; what is not in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.hub import Directory, HubUser
from benchpool_scheduler.runtime import Device, NodeFacts, Pinned
from benchpool_scheduler.service.ledger.usage_decay import UsageDecay
from benchpool_scheduler.service.observed.inventory import Inventory
from benchpool_scheduler.service.observed.problems import Problems
from benchpool_scheduler.service.observed.users import Users
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


@dataclass
class Site:
    """Settings and observations that every part of the service reads.

    Attributes:
        configuration: The one in force.
        state: The state folder.
        devices: All GPUs as the runtime last saw them. ``nodes``: what it then knew of machines.
        called: GPUs that servers in line wait for, by node. ``bench_line``: how many wait.
        problems: Sentences of health.
        past: What was used above quota (R7).
        images: Jobs may name the image they run in.
        containers: Where things are in workers that are containers; None where they are processes
            of the machine.
        environment: What every worker's environment has, by the administrator's allow-list.
    """

    configuration: Configuration
    clock: Clock
    directory: Directory
    state: Path
    new_id: Callable[[], str]
    base_url: str = ""
    accounts: Literal["shared", "system"] = "shared"
    images: bool = False
    containers: Containers | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    nodes: tuple[NodeFacts, ...] = ()
    called: Mapping[str, int] = field(default_factory=dict)
    bench_line: int = 0
    problems: Problems = field(default_factory=Problems)
    usage: UsageDecay = field(default_factory=UsageDecay)
    _inventory: Inventory | None = field(default=None, init=False, repr=False)
    _users: Users | None = field(default=None, init=False, repr=False)

    @property
    def inventory(self) -> Inventory:
        """The GPUs by node and purpose; made again when GPUs, machines or settings have changed."""
        known = self._inventory
        if (
            known is None
            or known.devices is not self.devices
            or known.told is not self.nodes
            or known.configuration is not self.configuration
        ):
            known = Inventory.of(self.devices, self.configuration, self.nodes)
            self._inventory = known
        return known

    @property
    def users(self) -> Users:
        """The Hub's users; made again when the Hub's answer or the configuration has changed."""
        known, users = self._users, self.directory.users()
        if (
            known is None
            or known.users is not users
            or known.configuration is not self.configuration
        ):
            known = self._users = Users.of(users, self.configuration)
        return known

    def job_folder(self, job: str) -> Path:
        """Return the folder of a job."""
        return self.state / "jobs" / job

    def hub_user(self, name: str) -> HubUser | None:
        """Return a user as the Hub last knew it."""
        return self.users.by_name.get(name)
