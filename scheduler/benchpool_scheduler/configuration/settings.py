"""Configuration of the pool as frozen data (formats, section 6)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Literal
from zoneinfo import ZoneInfo

from benchpool_scheduler.configuration.months import month_of
from benchpool_scheduler.core.benches.idle import IdleLadder
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget
from benchpool_scheduler.core.fairness.hour_standing import HourBudgets
from benchpool_scheduler.core.fairness.reservations import QuotaReservation
from benchpool_scheduler.core.jobs.tree import with_sums
from benchpool_scheduler.core.lifecycle.hangs import HangRule
from benchpool_scheduler.core.lifecycle.retries import RetryRules
from benchpool_scheduler.core.model import Policy, Project, ProjectName
from benchpool_scheduler.worker.folders import Part


@dataclass(frozen=True, slots=True)
class Build:
    """Build quotas of users (R2), and the GPUs set aside for them (R3).

    Attributes:
        default: GPUs of a user without another quota.
        groups: GPUs by group; a group property of the Hub has precedence.
        users: GPUs by user; has precedence over all others.
        reserve: GPUs set aside; None is ``auto``: the sum over the users who may start servers.
        parking: Benches may be parked: one machine, experimental.
    """

    default: int = 0
    groups: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)
    reserve: int | None = None
    oversubscribe: bool = False
    lend_idle: bool = False
    parking: bool = False


EVERYBODY = "*"
"""Member of a project that stands for all users without another project."""


@dataclass(frozen=True, slots=True)
class PersonalProject:
    """Settings of the personal project of each member (``each``); all are equal."""

    quota: int | None = 0
    limit: int | None = None
    weight: float = 1
    gpu_hours: HourBudget = field(default_factory=HourBudget)


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """Project with its members and leads.

    ``members`` and ``leads`` hold user names, and groups as ``group:NAME``. Members may be
    ``EVERYBODY``. With ``each`` it holds no jobs itself: every member has a personal project below
    it, see ``personal``. ``line`` is its line in the file, 0 without a file. ``gpu_hours`` is its
    monthly budget, which includes the use of projects below it. With ``sums`` no quota is written,
    and the quota is the sum of those of its children, if any (R4).
    """

    project: Project
    members: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    personal_projects: PersonalProject | None = None
    gpu_hours: HourBudget = field(default_factory=HourBudget)
    sums: bool = False

    @property
    def name(self) -> ProjectName:
        """Return the project's name."""
        return self.project.name


@dataclass(frozen=True, slots=True)
class Level:
    """Topology level: nodes that share a value of this label are close to each other (R12).

    Attributes:
        name: Name in jobs: the part of the label after the last ``/``.
    """

    label: str

    @property
    def name(self) -> str:
        """Return its name in jobs.

        >>> Level("topology.kubernetes.io/zone").name
        'zone'
        """
        return self.label.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class NodePool:
    """Set of nodes chosen by labels, and their purpose."""

    name: str
    nodes: Mapping[str, str] = field(default_factory=dict)
    purpose: frozenset[Literal["build", "train"]] = frozenset({"build", "train"})


@dataclass(frozen=True, slots=True)
class Budgets:
    """Limits of one user; services of the Hub have none.

    Attributes:
        jobs: Jobs that have not ended.
        submissions_mib: Size of the submissions of these jobs, in MiB.
        uploads_gib: Uploads in progress, in GiB.
        stored_gib: Stored contents, in GiB.
        values_gib: Values of a notebook sent with one job, in GiB.
        streams: Open event streams and followed logs.
        home_gib: Size of the home above which jobs are rejected; None is no limit. Not on a
            cluster.
        results_gib: Size of all kept results of the user's jobs above which jobs are rejected;
            None is no limit.
        checkpoints_gib: The same for checkpoints.
    """

    jobs: int = 10_000
    submissions_mib: int = 256
    uploads_gib: int = 20
    stored_gib: int = 200
    values_gib: int = 1
    streams: int = 64
    home_gib: int | None = None
    results_gib: int | None = None
    checkpoints_gib: int | None = None


@dataclass(frozen=True, slots=True)
class UserHours:
    """Monthly budgets of GPU-hours of users.

    Attributes:
        time_zone: Time zone of months and days, in budgets and reports.
        default: Budget of a user whom ``users`` does not name.
    """

    time_zone: str = "UTC"
    default: HourBudget = field(default_factory=HourBudget)
    users: Mapping[str, HourBudget] = field(default_factory=dict)

    def of(self, user: str) -> HourBudget:
        """Return the budget of a user.

        >>> UserHours(default=HourBudget(hard=9)).of("susan").hard
        9
        """
        return self.users.get(user, self.default)


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention times and limits.

    Attributes:
        ended_days: Days that a job is kept after its end.
        ended_jobs: Maximum number of ended jobs; the oldest are removed first.
        uploads_days: Days that an upload without a job is kept.
        checkpoints_days, results_days, logs_days: Days that these files are kept after the end of
            their job. None, and more than ``ended_days``, is as long as the job.
        use_days: Days that the use of ended jobs is kept, for history and what-ifs.
        audit_days: Minimum days that records of the audit trail are kept.
    """

    ended_days: float = 30.0
    ended_jobs: int = 20_000
    uploads_days: float = 1.0
    checkpoints_days: float | None = None
    results_days: float | None = None
    logs_days: float | None = None
    use_days: float = 400.0
    audit_days: float = 400.0

    def days_of(self, part: Part) -> float:
        """Return the days that a kind of files is kept after its job's end.

        >>> Retention(ended_days=30, logs_days=7).days_of("logs")
        7
        >>> Retention(ended_days=30, logs_days=90).days_of("logs")
        30
        """
        own: float | None = getattr(self, f"{part}_days")
        return self.ended_days if own is None else min(own, self.ended_days)


@dataclass(frozen=True, slots=True)
class IdleExemption:
    """Exemption of benches from the rule for idle benches until the end of a day.

    Attributes:
        who: A user, ``group:NAME`` or ``profile:NAME``.
        until: Last day of the exemption.
        why: Reason, for users.
    """

    who: str
    until: date
    why: str = ""

    def end(self, zone: str) -> float:
        """Return the end of its last day in a zone, in epoch seconds.

        >>> IdleExemption("ann", date(1970, 1, 1)).end("UTC")
        86400.0
        """
        following = self.until + timedelta(days=1)
        there = datetime(following.year, following.month, following.day, tzinfo=ZoneInfo(zone))
        return there.timestamp()


@dataclass(frozen=True, slots=True)
class IdleRule:
    """Rule for idle benches.

    Attributes:
        act: Whether the rule is enabled. Otherwise it neither notifies nor releases.
        tell_s: Idle time until the owner is notified, in seconds.
        ask_s: Idle time until the owner is asked, in seconds.
        act_s: Idle time until the bench is released, in seconds.
        keep_s: Length of one keep by the owner, in seconds.
        keeps_a_day: Maximum number of keeps in 24 hours.
    """

    act: bool = False
    tell_s: float = 900.0
    ask_s: float = 2700.0
    act_s: float = 3600.0
    keep_s: float = 3600.0
    keeps_a_day: int = 2
    exempt: tuple[IdleExemption, ...] = ()

    @property
    def ladder(self) -> IdleLadder:
        """Return its times for the state table."""
        return IdleLadder(tell_s=self.tell_s, ask_s=self.ask_s, act_s=self.act_s)

    def exempt_until(self, names: Collection[str], now: float, zone: str) -> float | None:
        """Return when the last current exemption of these names ends, or None without one.

        Args:
            names: Names as in ``IdleExemption.who``.
            zone: Time zone of the days.

        >>> rule = IdleRule(exempt=(IdleExemption("group:staff", date(1970, 1, 1)),))
        >>> rule.exempt_until({"ann", "group:staff"}, 5.0, "UTC")
        86400.0
        >>> rule.exempt_until({"group:staff"}, 86400.0, "UTC")
        """
        ends = (one.end(zone) for one in self.exempt if one.who in names)
        return max((end for end in ends if end > now), default=None)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a GPU-hour for its holder, for reports.

    Attributes:
        currency: Name in reports, such as EUR.
        gpu_hour: Price by GPU model; a missing model costs nothing.
    """

    currency: str = ""
    gpu_hour: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """All settings of ``benchpool.yaml``. The order of ``projects`` is their age.

    ``topology`` holds the topology levels, the widest first. Each node is a further level.
    ``warnings`` are sentences about settings that are allowed but probably not intended. ``text``
    is the text that was read, and ``source`` is its name.

    ``written`` is the configuration as written, if this one adds personal projects or active
    reservations. ``hour_budgets`` are the budgets of GPU-hours of all projects and users.
    ``oversubscribe`` allows projects to be guaranteed more GPUs in total than training has.
    """

    build: Build = field(default_factory=Build)
    projects: tuple[ProjectSettings, ...] = ()
    pools: tuple[NodePool, ...] = (NodePool("default"),)
    policy: Policy = field(default_factory=Policy)
    oversubscribe: bool = False
    topology: tuple[Level, ...] = ()
    budgets: Budgets = field(default_factory=Budgets)
    retention: Retention = field(default_factory=Retention)
    prices: Prices = field(default_factory=Prices)
    gpu_hours: UserHours = field(default_factory=UserHours)
    idle_benches: IdleRule = field(default_factory=IdleRule)
    retries: RetryRules = field(default_factory=RetryRules)
    hanging: HangRule = field(default_factory=HangRule)
    reservations: tuple[QuotaReservation, ...] = ()
    warnings: tuple[str, ...] = field(default=(), compare=False)
    text: str = field(default="", repr=False, compare=False)
    source: str = field(default="benchpool.yaml", repr=False, compare=False)
    written: Configuration | None = field(default=None, compare=False)
    _by_name: Mapping[str, ProjectSettings] = field(init=False, repr=False, compare=False)
    _parents: frozenset[str] = field(init=False, repr=False, compare=False)
    hour_budgets: HourBudgets = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the projects by name: every submission and every view of a job looks them up."""
        self._sum_quotas()
        # Of two projects with one name the first counts. The loader rejects the second.
        by_name = {settings.name: settings for settings in reversed(self.projects)}
        above = {p.project.parent for p in self.projects if p.project.parent is not None}
        above |= {p.name for p in self.projects if p.personal_projects is not None}
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "_parents", frozenset(above))
        budgets = HourBudgets(
            projects={name: it.gpu_hours for name, it in by_name.items()},
            parents={name: it.project.parent for name, it in by_name.items()},
            weights={name: it.project.weight for name, it in by_name.items()},
            users=self.gpu_hours.users,
            usual=self.gpu_hours.default,
            month_of=partial(month_of, zone=self.gpu_hours.time_zone),
        )
        object.__setattr__(self, "hour_budgets", budgets)

    def _sum_quotas(self) -> None:
        sums = {settings.name for settings in self.projects if settings.sums}
        if sums:
            projects = with_sums([settings.project for settings in self.projects], sums)
            found = tuple(
                settings if settings.project == project else replace(settings, project=project)
                for settings, project in zip(self.projects, projects, strict=True)
            )
            object.__setattr__(self, "projects", found)

    @property
    def offers_personal(self) -> bool:
        """Return whether a project gives each of its members a personal project."""
        return any(settings.personal_projects is not None for settings in self.projects)

    def project(self, name: str) -> ProjectSettings | None:
        """Return the settings of one project, or None."""
        return self._by_name.get(name)

    def upwards(self, name: str) -> Iterator[ProjectSettings]:
        """Yield a project and its ancestors, lowest first."""
        found = self.project(name)
        while found is not None:
            yield found
            parent = found.project.parent
            found = None if parent is None else self.project(parent)

    def is_parent(self, name: str) -> bool:
        """Return whether other projects are below this one. It then holds no jobs itself."""
        return name in self._parents

    def is_personal(self, name: str) -> bool:
        """Return whether a project was derived for a single user and is not in the file."""
        made = self.written is not None and self.written.project(name) is None
        return made and name in self._by_name

    def below(self, name: str) -> list[str]:
        """Return the names of the projects below one that take members, at any depth.

        They hold jobs, or make a personal project for each member. Personal projects are left out.
        """
        return [
            one.name
            for one in self.projects
            if one.name != name
            and (self.holds_jobs(one.name) or one.personal_projects is not None)
            and not self.is_personal(one.name)
            and any(above.name == name for above in self.upwards(one.name))
        ]

    def holds_jobs(self, name: str) -> bool:
        """Return whether a project of this name exists and may hold jobs."""
        return name in self._by_name and name not in self._parents
