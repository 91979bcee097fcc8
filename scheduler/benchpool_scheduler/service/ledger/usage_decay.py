"""Decaying past use of projects and users above their quotas (R7).

A GPU second used an age ago counts 0.5 ^ (age / half-life): the exponential decay of design.md R7.
Use at a steady rate r over t seconds is then worth, at their end,

    r * half-life / ln 2 * (1 - 0.5 ^ (t / half-life))

which is the integral of r * 0.5 ^ (age / half-life) over the ages 0 to t. The rates between two
samples are those of the earlier one. While the service does not run, past use only decays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.core.model import ProjectName, UserUse
from benchpool_scheduler.service.ledger.counters import JobCounters
from benchpool_scheduler.store.records import UseRecord

HOUR_S = 3600.0
LEAST_GPU_S = 1.0
"""Smallest use that is kept, in GPU seconds."""
GIVEN_S = 60.0
"""Minimum time between updates of past use for the core, in seconds.

Each update needs a new cluster state.
"""

Key = tuple[str, str]
"""Project and user; the user is empty for the project as a whole."""


def faded(gpu_s: float, seconds: float, half_life_s: float) -> float:
    """Return the remaining worth of past use after some time, in GPU seconds.

    >>> faded(80.0, 2 * 3600, half_life_s=3600)
    20.0
    """
    return gpu_s * math.pow(0.5, seconds / half_life_s)


def accrued(gpus: float, seconds: float, half_life_s: float) -> float:
    """Return the worth of steady use at its end; for a long half-life GPUs times seconds.

    >>> round(accrued(2, 10, half_life_s=1e9), 6)
    20.0
    """
    worth = -math.expm1(-math.log(2) * seconds / half_life_s)
    return gpus * half_life_s / math.log(2) * worth


@dataclass(frozen=True, slots=True)
class UsageSnapshot:
    """Past use for the core, in GPU seconds.

    Attributes:
        projects: By project. ``users``: of users inside projects.
    """

    projects: Mapping[ProjectName, float] = field(default_factory=dict)
    users: tuple[UserUse, ...] = ()


class UsageDecay:
    """Past use by project and user."""

    def __init__(self) -> None:
        self._use: dict[Key, float] = {}
        self._rates: Mapping[Key, float] = {}
        self._at = 0.0
        self._given_at = -math.inf

    def restore(self, records: Iterable[UseRecord], now: float, half_life_s: float) -> None:
        """Start with the saved use."""
        self._use = {
            (it.project, it.user): faded(it.gpu_s, max(0.0, now - it.at), half_life_s)
            for it in records
        }
        self._at = now

    def sample(self, now: float, rates: Mapping[Key, float], half_life_s: float) -> None:
        """Add the use since the last sample, and store the rates from now on.

        Args:
            rates: GPUs above quota by project and user.
        """
        seconds = max(0.0, now - self._at)
        counted: dict[Key, float] = {}
        for key in self._use.keys() | self._rates.keys():
            gpu_s = faded(self._use.get(key, 0.0), seconds, half_life_s)
            gpu_s += accrued(self._rates.get(key, 0.0), seconds, half_life_s)
            if gpu_s >= LEAST_GPU_S or key in rates:
                counted[key] = gpu_s
        self._use, self._rates, self._at = counted, dict(rates), now

    def of(self, project: str, user: str = "") -> float:
        """Return the past use as of the last sample, in GPU seconds."""
        return self._use.get((project, user), 0.0)

    def by_project(self) -> Mapping[str, float]:
        """Return the past use of projects as of the last sample, in GPU seconds."""
        return {project: gpu_s for (project, user), gpu_s in self._use.items() if not user}

    def records(self) -> tuple[UseRecord, ...]:
        """Return the records to save."""
        return tuple(
            UseRecord(project, user, gpu_s, self._at)
            for (project, user), gpu_s in sorted(self._use.items())
            if gpu_s >= LEAST_GPU_S
        )

    def snapshot(self, previous: UsageSnapshot, configuration: Configuration) -> UsageSnapshot:
        """Return the past use for the core, which is most often the previous one.

        It is empty while the policy gives past use no weight.
        """
        if configuration.policy.usage_weight <= 0:
            self._given_at = -math.inf
            return UsageSnapshot()
        if self._at - self._given_at < GIVEN_S:
            return previous
        self._given_at = self._at
        known = [(key, gpu_s) for key, gpu_s in sorted(self._use.items()) if gpu_s >= 1]
        return UsageSnapshot(
            {ProjectName(project): round(gpu_s) for (project, user), gpu_s in known if not user},
            tuple(
                UserUse(user, ProjectName(project), round(gpu_s))
                for (project, user), gpu_s in known
                if user and configuration.holds_jobs(project)
            ),
        )


def rates(counters: JobCounters, configuration: Configuration) -> dict[Key, float]:
    """Return the GPUs that projects hold above their quotas, at every level of the tree.

    The users of such a project divide this number in proportion to the GPUs that they hold.
    """
    held: dict[str, int] = {}
    for project, gpus in counters.held.items():
        for name in _upwards(project, configuration):
            held[name] = held.get(name, 0) + gpus
    found: dict[Key, float] = {}
    for name, gpus in held.items():
        settings = configuration.project(name)
        quota = 0 if settings is None else settings.project.quota
        if quota is not None and gpus > quota:
            found[name, ""] = float(gpus - quota)
    for (project, user), gpus in counters.held_of.items():
        if (over := found.get((project, ""))) is not None:
            found[project, user] = over * gpus / counters.held[project]
    return found


def _upwards(project: str, configuration: Configuration) -> Iterator[str]:
    name: str | None = project
    while name is not None:
        yield name
        settings = configuration.project(name)
        name = None if settings is None else settings.project.parent
