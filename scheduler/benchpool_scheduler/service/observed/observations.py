"""Newest facts from configuration, runtime, Hub and passes, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from benchpool_scheduler.configuration import Configuration, in_force, written
from benchpool_scheduler.core.fairness.reservations import standing
from benchpool_scheduler.hub import HubUser
from benchpool_scheduler.runtime import Device, NodeFacts
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_scheduler.service.ledger.usage_decay import UsageSnapshot
from benchpool_scheduler.service.observed.inventory import Inventory
from benchpool_scheduler.service.observed.latest_pass import LatestPass
from benchpool_scheduler.service.observed.safe_mode import SafeMode
from benchpool_scheduler.service.observed.service_settings import NO_DEFAULTS, DefaultAmounts
from benchpool_scheduler.service.observed.users import Users
from benchpool_scheduler.store.records import NodeRecord


@dataclass(frozen=True, slots=True)
class ParkedGpu:
    """A GPU that a parked bench lends. ``wanted``: the bench returns, so its job is preempted."""

    lease: str
    user: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations at one instant. They never change; an update creates a new value.

    Attributes:
        configuration: The one in force, with the personal projects of the users.
        inventory: The GPUs by node and purpose, by that configuration.
        users: The Hub's users and their build quotas, by that configuration.
        called: Number of GPUs that the bench queue reclaims, by node.
        parked: The GPUs of parked benches, by UUID. No other bench gets them.
        usage: Past use above quota, for the core (R7).
        hours: Users and projects past a budget of GPU-hours in this month.
        idle_benches: Notifications to owners of idle benches, by user and key.
        drained: Names of nodes that take no starts because of a fault.
        nodes: Administrators' records of nodes, by name. ``closed``: nodes that take no starts
            now because of them.
        latest_pass: Results of the newest pass.
        problems: Health problems as sentences by topic, in the order in which they arose.
        safe_mode: Unknown running jobs and unreadable records.
        default_amounts: CPUs and memory of workers whose job names none.
        at: Instant of the reservations in the configuration.
    """

    configuration: Configuration
    inventory: Inventory
    users: Users
    called: Mapping[str, int] = field(default_factory=dict)
    parked: Mapping[str, ParkedGpu] = field(default_factory=dict)
    usage: UsageSnapshot = field(default_factory=UsageSnapshot)
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
        """Return the observations before the first report of the runtime."""
        configuration = _for(users, configuration, 0.0)
        inventory, known = Inventory.of((), configuration), Users.of(users, configuration)
        return cls(configuration, inventory, known, default_amounts=default_amounts)

    def with_configuration(self, configuration: Configuration) -> Observations:
        """Return the same pool under another configuration."""
        return self._of(configuration, self.users.users)

    def as_of(self, now: float) -> Observations:
        """Return the observations with the reservations of an instant, or ``self`` if equal."""
        own = written(self.configuration).reservations
        if not own or standing(own, now) == standing(own, self.at):
            return self
        return replace(self, at=now)._of(self.configuration, self.users.users)

    def _of(self, configuration: Configuration, users: tuple[HubUser, ...]) -> Observations:
        machines, configuration = self.inventory, _for(users, configuration, self.at)
        if configuration is not self.configuration:
            machines = Inventory.of(machines.devices, configuration, machines.reported)
        return replace(
            self,
            configuration=configuration,
            inventory=machines,
            users=Users.of(users, configuration),
        )

    def with_machines(
        self, devices: tuple[Device, ...], nodes: tuple[NodeFacts, ...]
    ) -> Observations:
        """Return the observations with the GPUs and nodes that the runtime reports."""
        return replace(self, inventory=Inventory.of(devices, self.configuration, nodes))

    def with_users(self, users: tuple[HubUser, ...]) -> Observations:
        """Return the observations with the users that the Hub reports."""
        return self._of(self.configuration, users)

    def with_problem(self, topic: str, sentence: str | None) -> Observations:
        """Return the observations with this problem of a topic; None removes it."""
        others = {name: text for name, text in self.problems.items() if name != topic}
        if sentence is None:
            return replace(self, problems=others)
        return replace(self, problems={**self.problems, topic: sentence})

    def hub_user(self, name: str) -> HubUser | None:
        """Return a user as the Hub last reported it, or None."""
        return self.users.by_name.get(name)


def _for(users: tuple[HubUser, ...], configuration: Configuration, now: float) -> Configuration:
    return in_force(configuration, {user.name: user.groups.keys() for user in users}, now)
