"""The pool's configuration as frozen data (formats, section 6)."""

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
    """Who may hold how many build GPUs (R2), and how many are set aside for that (R3).

    Attributes:
        default: GPUs of a user whom nothing else names.
        groups: GPUs by group; a group property of the Hub goes before this.
        users: GPUs by user; goes before everything.
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
"""Among the members of a project: whoever belongs to no other project."""


@dataclass(frozen=True, slots=True)
class PersonalProject:
    """What each member's own project below a project has (``each``); all count alike."""

    quota: int | None = 0
    limit: int | None = None
    weight: float = 1
    gpu_hours: HourBudget = field(default_factory=HourBudget)


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """A project, who belongs to it and who leads it.

    ``members`` and ``leads`` hold user names, and groups as ``group:NAME``; members may be
    ``EVERYBODY``. With ``each`` it holds no jobs itself: every member has a project of their own
    below it, see ``personal``. ``line`` is where the file names it, 0 where no file does.
    ``gpu_hours`` is its budget of a month; what is used below it counts, too. With ``sums`` its
    quota is not written: with projects below it, it is the sum of theirs (R4).
    """

    project: Project
    members: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)
    each: PersonalProject | None = None
    gpu_hours: HourBudget = field(default_factory=HourBudget)
    sums: bool = False

    @property
    def name(self) -> ProjectName:
        """The project's name."""
        return self.project.name


@dataclass(frozen=True, slots=True)
class Level:
    """A level of the machine room: nodes that share a value of this label lie close (R12).

    Attributes:
        name: As jobs name it: the label's part behind the last ``/``.
    """

    label: str

    @property
    def name(self) -> str:
        """How jobs name it.

        >>> Level("topology.kubernetes.io/zone").name
        'zone'
        """
        return self.label.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class NodePool:
    """A set of nodes chosen by labels, and what they serve."""

    name: str
    nodes: Mapping[str, str] = field(default_factory=dict)
    serves: frozenset[Literal["build", "train"]] = frozenset({"build", "train"})


@dataclass(frozen=True, slots=True)
class Budgets:
    """What one user may have at once; services have no bound.

    Attributes:
        jobs: Jobs that have not ended. ``submissions_mib``: what these were submitted with.
        uploads_gib: Uploads that are on their way. ``stored_gib``: contents that are kept.
        values_gib: Values of a notebook that go along with one job.
        streams: Open event streams and followed logs.
        home_gib: What the home may hold for jobs to be taken; None is no bound. Not on a cluster.
        results_gib: What the results of the user's jobs may hold together that the scheduler keeps,
            for further jobs to be taken; None is no bound. ``checkpoints_gib`` likewise.
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
    """Budgets of GPU-hours of users in a calendar month.

    Attributes:
        time_zone: Whose months and days count, in budgets and reports.
        default: Of a user whom ``users`` does not name.
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
    """How long what is over is kept.

    Attributes:
        ended_days: Days that a job is kept after its end.
        ended_jobs: Ended jobs that are kept at most; the oldest go first.
        uploads_days: Days that an upload is kept which no job names.
        checkpoints_days: Days that checkpoints are kept after the end of their job; None, and more
            than ``ended_days``, are as long as the job. ``results_days`` and ``logs_days`` alike.
        use_days: Days that what an ended job used is kept, for history and what-ifs.
        audit_days: Days that records of the audit trail are kept at least.
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
        """Return for how many days after its job's end a kind of files is kept.

        >>> Retention(ended_days=30, logs_days=7).days_of("logs")
        7
        >>> Retention(ended_days=30, logs_days=90).days_of("logs")
        30
        """
        own: float | None = getattr(self, f"{part}_days")
        return self.ended_days if own is None else min(own, self.ended_days)


@dataclass(frozen=True, slots=True)
class IdleExemption:
    """Whose benches the rule for idle benches leaves alone until the end of a day.

    Attributes:
        who: A user, ``group:NAME`` or ``profile:NAME``. ``why``: for people to read.
    """

    who: str
    until: date
    why: str = ""

    def end(self, zone: str) -> float:
        """Return when its last day ends there, in seconds of the epoch.

        >>> IdleExemption("ann", date(1970, 1, 1)).end("UTC")
        86400.0
        """
        following = self.until + timedelta(days=1)
        there = datetime(following.year, following.month, following.day, tzinfo=ZoneInfo(zone))
        return there.timestamp()


@dataclass(frozen=True, slots=True)
class IdleRule:
    """When an idle bench is given back.

    Attributes:
        act: Without it nobody is told anything and nothing is given back.
        tell_s: Seconds of idleness until it is said, ``ask_s`` until its owner is asked, ``act_s``
            until it is given back.
        keep_s: For so long an owner keeps a bench, ``keeps_a_day`` times in 24 hours.
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
        """Its times as the table takes them."""
        return IdleLadder(tell_s=self.tell_s, ask_s=self.ask_s, act_s=self.act_s)

    def exempt_until(self, names: Collection[str], now: float, zone: str) -> float | None:
        """Return until when one of these names is left alone; None for none of them, or no longer.

        Args:
            names: As ``IdleExemption.who`` has them. ``zone``: whose days count.

        >>> rule = IdleRule(exempt=(IdleExemption("group:staff", date(1970, 1, 1)),))
        >>> rule.exempt_until({"ann", "group:staff"}, 5.0, "UTC")
        86400.0
        >>> rule.exempt_until({"group:staff"}, 86400.0, "UTC")
        """
        ends = (one.end(zone) for one in self.exempt if one.who in names)
        return max((end for end in ends if end > now), default=None)


@dataclass(frozen=True, slots=True)
class Prices:
    """What an hour of a GPU costs who holds it, for reports.

    Attributes:
        currency: As reports name it, such as EUR.
        gpu_hour: By model of the GPU; a model that is not named costs nothing.
    """

    currency: str = ""
    gpu_hour: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that ``benchpool.yaml`` says; the order of ``projects`` is their age.

    ``topology`` holds the levels of the machine room, the widest first; each node is a level of
    its own besides. ``warnings`` are sentences about what is allowed but probably not meant;
    ``text`` is what it was read from, ``source`` what that is called. ``written`` is the one that
    people wrote, where this one has personal projects besides, or reservations stand in it.
    ``hour_budgets`` are all budgets of GPU-hours, by whom they are. ``oversubscribe`` lets projects
    be guaranteed more GPUs together than training has.
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
        """Make the projects quick to find: every submission and every look at a job asks."""
        self._sum_quotas()
        # Of two projects of one name the first counts; the loader refuses the second.
        by_name = {settings.name: settings for settings in reversed(self.projects)}
        above = {p.project.parent for p in self.projects if p.project.parent is not None}
        above |= {p.name for p in self.projects if p.each is not None}
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
        """Whether some project gives each of its members one of their own."""
        return any(settings.each is not None for settings in self.projects)

    def project(self, name: str) -> ProjectSettings | None:
        """Return the settings of one project, or None."""
        return self._by_name.get(name)

    def upwards(self, name: str) -> Iterator[ProjectSettings]:
        """Yield a project and those above it, the lowest first."""
        found = self.project(name)
        while found is not None:
            yield found
            parent = found.project.parent
            found = None if parent is None else self.project(parent)

    def is_parent(self, name: str) -> bool:
        """Tell whether other projects lie below this one; it then holds no jobs itself."""
        return name in self._parents

    def is_personal(self, name: str) -> bool:
        """Tell whether a project was made for a single user, and nobody wrote it."""
        made = self.written is not None and self.written.project(name) is None
        return made and name in self._by_name

    def below(self, name: str) -> list[str]:
        """Return the names of the projects below one that take members, at any depth.

        They hold jobs, or make a project for each member; those so made are left out.
        """
        return [
            one.name
            for one in self.projects
            if one.name != name
            and (self.holds_jobs(one.name) or one.each is not None)
            and not self.is_personal(one.name)
            and any(above.name == name for above in self.upwards(one.name))
        ]

    def holds_jobs(self, name: str) -> bool:
        """Tell whether there is a project of this name that may hold jobs."""
        return name in self._by_name and name not in self._parents
