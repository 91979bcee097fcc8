"""What the service was told last by configuration, runtime, Hub and passes, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from benchpool_scheduler.configuration import Configuration, in_force, written
from benchpool_scheduler.core.fairness.reservations import standing
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_scheduler.service.ledger.usage_decay import ToldUsage
from benchpool_scheduler.service.observed.inventory import Inventory
from benchpool_scheduler.service.observed.latest_pass import LatestPass
from benchpool_scheduler.service.observed.safe_mode import SafeMode
from benchpool_scheduler.service.observed.service_settings import NO_DEFAULTS, DefaultAmounts
from benchpool_scheduler.service.observed.users import Users
from benchpool_scheduler.store.records import NodeRecord


@dataclass(frozen=True, slots=True)
class ParkedGpu:
    """A GPU that a parked bench lends. ``wanted``: its kernel comes back, whoever is on it goes."""

    lease: str
    user: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class Observations:
    """One instant's observations. A change makes another value; this one never changes.

    Attributes:
        configuration: The one in force, with the personal projects of the users.
        inventory: The GPUs by node and purpose, by that configuration.
        users: The Hub's users and their build quotas, by that configuration.
        called: How many GPUs servers in line for benches wait for, by node.
        parked: The GPUs of parked benches, by UUID: no other bench gets them.
        usage: What the core is told of past use above quota (R7).
        hours: Who is past a budget of GPU-hours in this month.
        idle_benches: What owners of idle benches are to hear, by user and a name of its own.
        drained: Names of machines that take no starts for a fault of their own.
        nodes: What administrators said of machines, by name; ``closed``: those that take no starts
            now because of it.
        latest_pass: What the newest pass said.
        problems: Sentences of health by their topic, in the order in which they came up.
        safe_mode: What runs and is not known, and what cannot be read.
        default_amounts: What workers ask for whose job names no cores or no memory.
        at: The instant whose reservations stand in the configuration.
    """

    configuration: Configuration
    inventory: Inventory
    users: Users
    called: Mapping[str, int] = field(default_factory=dict)
    parked: Mapping[str, ParkedGpu] = field(default_factory=dict)
    usage: ToldUsage = field(default_factory=ToldUsage)
    hours: MonthlyHours = field(default_factory=MonthlyHours)
    idle_benches: Mapping[tuple[str, str], str] = field(default_factory=dict)
    drained: frozenset[str] = frozenset()
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    closed: frozenset[str] = frozenset()
    latest_pass: LatestPass = field(default_factory=LatestPass)
    problems: Mapping[str, str] = field(default_factory=dict)
    safe_mode: SafeMode = field(default_factory=SafeMode)
    default_amounts: DefaultAmounts = NO_DEFAULTS
    at: float = 0.0

    @classmethod
    def of(
        cls,
        configuration: Configuration,
        users: tuple[HubUser, ...] = (),
        default_amounts: DefaultAmounts = NO_DEFAULTS,
    ) -> Observations:
        """Return what is known before the runtime was asked."""
        configuration = _for(users, configuration, 0.0)
        inventory, known = Inventory.of((), configuration), Users.of(users, configuration)
        return cls(configuration, inventory, known, default_amounts=default_amounts)

    def with_configuration(self, configuration: Configuration) -> Observations:
        """Return the same pool under another configuration."""
        return self._of(configuration, self.users.users)

    def as_of(self, now: float) -> Observations:
        """Return this with the reservations of an instant; itself where they are the same."""
        own = written(self.configuration).reservations
        if not own or standing(own, now) == standing(own, self.at):
            return self
        return replace(self, at=now)._of(self.configuration, self.users.users)

    def _of(self, configuration: Configuration, users: tuple[HubUser, ...]) -> Observations:
        machines, configuration = self.inventory, _for(users, configuration, self.at)
        if configuration is not self.configuration:
            machines = Inventory.of(machines.devices, configuration, machines.told)
        return replace(
            self,
            configuration=configuration,
            inventory=machines,
            users=Users.of(users, configuration),
        )

    def with_machines(
        self, devices: tuple[Device, ...], nodes: tuple[NodeFacts, ...]
    ) -> Observations:
        """Return this with GPUs and machines as the runtime tells them now."""
        return replace(self, inventory=Inventory.of(devices, self.configuration, nodes))

    def with_users(self, users: tuple[HubUser, ...]) -> Observations:
        """Return this with the Hub's users as it tells them now."""
        return self._of(self.configuration, users)

    def with_problem(self, topic: str, sentence: str | None) -> Observations:
        """Return this with another sentence about a topic; None for no more."""
        others = {name: text for name, text in self.problems.items() if name != topic}
        if sentence is None:
            return replace(self, problems=others)
        return replace(self, problems={**self.problems, topic: sentence})

    def hub_user(self, name: str) -> HubUser | None:
        """Return a user as the Hub last knew it."""
        return self.users.by_name.get(name)


def _for(users: tuple[HubUser, ...], configuration: Configuration, now: float) -> Configuration:
    return in_force(configuration, {user.name: user.groups.keys() for user in users}, now)
