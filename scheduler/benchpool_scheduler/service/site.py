"""Where the service runs and by which settings; what is not in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.hub import Directory, HubUser
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.service.clock import Clock


@dataclass
class Site:
    """Settings and observations that every part of the service reads.

    Attributes:
        configuration: The one in force.
        state: The state folder.
        devices: All GPUs as the runtime last saw them.
        problems: Sentences of health by their topic.
        environment: What every worker's environment has, by the administrator's allow-list.
    """

    configuration: Configuration
    clock: Clock
    directory: Directory
    state: Path
    new_id: Callable[[], str]
    base_url: str = ""
    accounts: Literal["shared", "system"] = "shared"
    environment: Mapping[str, str] = field(default_factory=dict)
    devices: tuple[Device, ...] = ()
    problems: dict[str, str] = field(default_factory=dict)

    def job_folder(self, job: str) -> Path:
        """Return the folder of a job."""
        return self.state / "jobs" / job

    def hub_user(self, name: str) -> HubUser | None:
        """Return a user as the Hub last knew it."""
        return next((user for user in self.directory.users() if user.name == name), None)

    def report(self, topic: str, sentence: str | None) -> None:
        """Set or, with None, clear a sentence of health."""
        if sentence is None:
            self.problems.pop(topic, None)
        else:
            self.problems[topic] = sentence
