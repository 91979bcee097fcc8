"""The mixes of Kueue's performance test, its published results, and the required pool.

The numbers are those of formats, section 3. A unit is a GPU; all units are on one node, since Kueue
counts and does not place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.configuration.settings import Build, ProjectSettings
from benchpool_scheduler.core.model import Policy, Project, ProjectName

QUOTA, LIMIT = 20, 120
"""Guaranteed quota and limit of every project, in units."""

PolicyName = Literal["eager", "protected"]
POLICIES: Mapping[PolicyName, Policy] = {
    # Kueue has neither a bound on evictions nor a minimum run time, and evicts immediately.
    "eager": Policy(
        grace_s=0.0,
        min_runtime_s=0.0,
        preemptions_per_hour=1_000_000,
        preemptions_per_day=1_000_000,
    ),
    # No job of the mixes runs longer, so a started job always ends.
    "protected": Policy(grace_s=0.0, min_runtime_s=1.0, preemptions_per_hour=4),
}
"""Policies by name: eviction whenever a rule allows it, or protection after each start (R19)."""


@dataclass(frozen=True, slots=True)
class Class:
    """One of the three sets of jobs that each project gets, with one job per interval."""

    name: str
    jobs: int
    interval_s: float
    run_s: float
    priority: int
    units: int


@dataclass(frozen=True, slots=True)
class Published:
    """Published results of Kueue: means of its runs, with an API server limit of 50 requests/s.

    Attributes:
        wall_s: Time for the whole mix. ``per_s``: admissions per second.
        latency_s: Mean time from creation to the latest admission by class.
        ideal_s: Time of a scheduler without latency and without preemption.
            ``ideal_restarting_s``: the same with preemption that restarts jobs from zero.
    """

    wall_s: float
    per_s: float
    latency_s: Mapping[str, float]
    ideal_s: float
    ideal_restarting_s: float | None = None


@dataclass(frozen=True, slots=True)
class Mix:
    """Tree of projects and their jobs."""

    name: str
    parents: int
    children: int
    classes: tuple[Class, ...]
    kueue: Published

    @property
    def projects(self) -> tuple[str, ...]:
        """Return the names of the projects that hold jobs."""
        return tuple(
            f"cohort{parent}-{child}"
            for parent in range(self.parents)
            for child in range(self.children)
        )

    @property
    def units(self) -> int:
        """Return the size of the pool: the sum of the quotas."""
        return self.parents * self.children * QUOTA

    @property
    def jobs(self) -> int:
        """Return the total number of jobs."""
        return self.parents * self.children * sum(each.jobs for each in self.classes)

    @property
    def unit_seconds(self) -> float:
        """Return the total work, in units times seconds."""
        each = sum(one.jobs * one.run_s * one.units for one in self.classes)
        return self.parents * self.children * each


MIXES: Mapping[str, Mix] = {
    "baseline": Mix(
        "baseline", 5, 6,
        (Class("small", 350, 0.100, 0.200, 50, 1),
         Class("medium", 100, 0.500, 0.500, 100, 5),
         Class("large", 50, 1.200, 1.000, 200, 20)),
        Published(351, 42.7, {"small": 215, "medium": 77, "large": 16.5}, 67, 77),
    ),
    "large": Mix(
        "large", 10, 100,
        (Class("small", 35, 0.060, 0.150, 50, 1),
         Class("medium", 11, 0.300, 0.350, 100, 5),
         Class("large", 4, 0.700, 0.700, 200, 20)),
        Published(1179, 42.4, {}, 4.7),
    ),
}  # fmt: skip
"""The mixes by name."""


def configuration(mix: Mix, policy: PolicyName) -> Configuration:
    """Return the pool's configuration: each project has one member of the same name.

    A parent is a cohort of Kueue. Its quota and its limit are the sum of the quotas below it, so
    that its projects lend only to each other.
    """
    total = mix.children * QUOTA
    parents = [
        ProjectSettings(Project(ProjectName(f"cohort{number}"), quota=total, limit=total))
        for number in range(mix.parents)
    ]
    children = [
        ProjectSettings(
            Project(
                ProjectName(name),
                ProjectName(name.partition("-")[0]),
                quota=QUOTA,
                limit=LIMIT,
            ),
            members=(name,),
        )
        for name in mix.projects
    ]
    return Configuration(
        build=Build(reserve=0), projects=(*parents, *children), policy=POLICIES[policy]
    )
