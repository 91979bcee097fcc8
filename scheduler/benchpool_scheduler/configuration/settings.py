"""The pool's configuration as frozen data (formats, section 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from benchpool_scheduler.core.model import Policy, Project, ProjectName


@dataclass(frozen=True, slots=True)
class Build:
    """Who may hold how many build GPUs (R2), and how many are set aside for that (R3).

    Attributes:
        default: GPUs of a user whom nothing else names.
        groups: GPUs by group; a group property of the Hub goes before this.
        users: GPUs by user; goes before everything.
        reserve: GPUs set aside; None is ``auto``: the sum over the users who may start servers.
    """

    default: int = 0
    groups: Mapping[str, int] = field(default_factory=dict)
    users: Mapping[str, int] = field(default_factory=dict)
    reserve: int | None = None
    oversubscribe: bool = False
    lend_idle: bool = False


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """A project, who belongs to it and who leads it.

    ``members`` and ``leads`` hold user names, and groups as ``group:NAME``. ``line`` is where the
    file names it, 0 where no file does.
    """

    project: Project
    members: tuple[str, ...] = ()
    leads: tuple[str, ...] = ()
    line: int = field(default=0, compare=False)

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
        streams: Open event streams and followed logs.
    """

    jobs: int = 10_000
    submissions_mib: int = 256
    uploads_gib: int = 20
    stored_gib: int = 200
    streams: int = 64


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is over is kept.

    Attributes:
        ended_days: Days that a job is kept after its end, with results, checkpoints and logs.
        ended_jobs: Ended jobs that are kept at most; the oldest go first.
        uploads_days: Days that an upload is kept which no job names.
    """

    ended_days: float = 30.0
    ended_jobs: int = 20_000
    uploads_days: float = 1.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that ``benchpool.yaml`` says; the order of ``projects`` is their age.

    ``topology`` holds the levels of the machine room, the widest first; each node is a level of
    its own besides. ``warnings`` are sentences about what is allowed but probably not meant.
    """

    build: Build = field(default_factory=Build)
    projects: tuple[ProjectSettings, ...] = ()
    pools: tuple[NodePool, ...] = (NodePool("default"),)
    policy: Policy = field(default_factory=Policy)
    topology: tuple[Level, ...] = ()
    budgets: Budgets = field(default_factory=Budgets)
    retention: Retention = field(default_factory=Retention)
    warnings: tuple[str, ...] = field(default=(), compare=False)
    _by_name: Mapping[str, ProjectSettings] = field(init=False, repr=False, compare=False)
    _parents: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Make the projects quick to find: every submission and every look at a job asks."""
        # Of two projects of one name the first counts; the loader refuses the second.
        by_name = {settings.name: settings for settings in reversed(self.projects)}
        above = {p.project.parent for p in self.projects if p.project.parent is not None}
        object.__setattr__(self, "_by_name", by_name)
        object.__setattr__(self, "_parents", frozenset(above))

    def project(self, name: str) -> ProjectSettings | None:
        """Return the settings of one project, or None."""
        return self._by_name.get(name)

    def is_parent(self, name: str) -> bool:
        """Tell whether other projects lie below this one; it then holds no jobs itself."""
        return name in self._parents

    def holds_jobs(self, name: str) -> bool:
        """Tell whether there is a project of this name that may hold jobs."""
        return name in self._by_name and name not in self._parents
