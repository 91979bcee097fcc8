"""Tree of projects, with bounds as exact amounts.

Only leaves hold jobs. The position in the list is the age, oldest first. It decides every tie.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.core.jobs.amounts import UNITS, Bounds
from benchpool_scheduler.core.model import Bound, Project, ProjectName
from benchpool_scheduler.errors import InvalidInput

Weights = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Branch:
    """A project in the tree.

    Attributes:
        index: Its age among all projects. 0 is the oldest.
        path: Its ancestors and itself, from the top.
        quota: Guaranteed amounts. None means unlimited.
        limit: Most amounts that it may hold. None means no limit.
        firm_quota: Quota for non-preemptible jobs, without reservations.
        weights: Weight for the surplus, for each resource (R5).
        rest_weights: Weight for the parent's guarantee beyond the quotas of its children (R5a): as
            configured, else 1.
        limited: Projects of ``path`` that have a limit, the lowest level first.
        gone: It still has jobs, but starts no more.
    """

    name: ProjectName
    index: int
    path: tuple[int, ...]
    children: tuple[int, ...]
    quota: Bounds
    limit: Bounds
    weights: Weights
    rest_weights: Weights
    priority: int
    min_runtime_s: float | None
    used_gpu_s: float
    limited: tuple[int, ...]
    firm_quota: Bounds
    gone: bool = False


def with_sums(
    projects: Sequence[Project], unwritten: Collection[ProjectName]
) -> tuple[Project, ...]:
    """Return the projects, with the sum of the children's quotas for parents without a quota (R4).

    The parent's own reservations are added. Cycles of parents are left unchanged.

    Args:
        unwritten: Projects without a configured quota.

    >>> org = Project(ProjectName("org"))
    >>> teams = [Project(ProjectName(it), org.name, quota=2) for it in ("a", "b")]
    >>> with_sums([org, *teams], {org.name})[0].quota
    4
    """
    found = {project.name: project for project in projects}
    below: dict[ProjectName | None, list[ProjectName]] = {}
    for project in projects:
        below.setdefault(project.parent, []).append(project.name)

    downwards = [*below.get(None, [])]
    for name in downwards:
        downwards += below.get(name, [])
    for name in reversed(downwards):
        children = [found[child] for child in below.get(name, [])]
        if name in unwritten and children:
            own, quotas = found[name], [child.quota for child in children]
            reserved = own.reserved - sum(child.reserved for child in children)
            whole = None if None in quotas else sum(quota or 0 for quota in quotas) + reserved
            found[name] = replace(own, quota=whole)
    return tuple(found[project.name] for project in projects)


class Tree:
    """Tree of all projects.

    Attributes:
        branches: All projects, by age.
        tops: Projects without a parent.
        gpus_alone: No project has a quota of CPUs or memory, so that only GPUs justify a claim
        (R15).
    """

    def __init__(self, projects: Sequence[Project]) -> None:
        """Build the tree.

        Raises:
            InvalidInput: A name occurs twice, a parent is unknown, or parents form a cycle.
        """
        self.numbers = {project.name: index for index, project in enumerate(projects)}
        if len(self.numbers) < len(projects):
            names = [project.name for project in projects]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(f"project {twice} is declared twice; give each its own name")
        children: list[list[int]] = [[] for _ in projects]
        tops: list[int] = []
        for index, project in enumerate(projects):
            if project.parent is None:
                tops.append(index)
            elif project.parent in self.numbers:
                children[self.numbers[project.parent]].append(index)
            else:
                raise InvalidInput(
                    f"project {project.name} has the parent {project.parent}, "
                    "which is not declared; declare it or name another"
                )
        self.tops = tuple(tops)
        self.branches = tuple(
            _branch(projects, index, self._path(projects, index), tuple(children[index]))
            for index, project in enumerate(projects)
        )
        self.gpus_alone = all(b.quota[1] is None and b.quota[2] is None for b in self.branches)

    def _path(self, projects: Sequence[Project], index: int) -> tuple[int, ...]:
        path = [index]
        while (parent := projects[path[-1]].parent) is not None and parent in self.numbers:
            path.append(self.numbers[parent])
            if len(path) > len(projects):
                raise InvalidInput(
                    f"project {projects[index].name} is its own ancestor; "
                    "remove the parent of one project of the cycle"
                )
        return tuple(reversed(path))

    def of(self, name: ProjectName) -> Branch:
        """Return the branch of a project.

        Raises:
            InvalidInput: The project does not exist.
        """
        try:
            return self.branches[self.numbers[name]]
        except KeyError:
            raise InvalidInput(
                f"there is no project {name}; the projects are {', '.join(self.numbers)}"
            ) from None

    def min_runtime_s(self, branch: Branch, default: float) -> float:
        """Return the protection after a start in seconds: its own, else an ancestor's (R19)."""
        for index in reversed(branch.path):
            value = self.branches[index].min_runtime_s
            if value is not None:
                return value
        return default


def _branch(
    projects: Sequence[Project], index: int, path: tuple[int, ...], children: tuple[int, ...]
) -> Branch:
    project = projects[index]
    gpus = Bound(project.quota, project.limit, project.weight)
    every = (gpus, project.cpus, project.memory_gib)
    firm = None if project.quota is None else project.quota - project.reserved
    weighed = Bound(firm, project.limit, project.weight)
    return Branch(
        name=project.name,
        index=index,
        path=path,
        children=children,
        quota=_bounds(*(bound.quota for bound in every)),
        limit=_bounds(*(bound.limit for bound in every)),
        weights=(_weight(weighed), _weight(every[1]), _weight(every[2])),
        rest_weights=(_rest_weight(every[0]), _rest_weight(every[1]), _rest_weight(every[2])),
        priority=project.priority,
        min_runtime_s=project.min_runtime_s,
        used_gpu_s=project.used_gpu_s,
        limited=tuple(i for i in reversed(path) if _has_limit(projects[i])),
        firm_quota=_bounds(firm, project.cpus.quota, project.memory_gib.quota),
        gone=project.gone,
    )


def _has_limit(project: Project) -> bool:
    bounds = (project.limit, project.cpus.limit, project.memory_gib.limit)
    return any(bound is not None for bound in bounds)


def _bounds(gpus: float | None, cpus: float | None, memory: float | None) -> Bounds:
    return (
        None if gpus is None else round(gpus * UNITS[0]),
        None if cpus is None else round(cpus * UNITS[1]),
        None if memory is None else round(memory * UNITS[2]),
    )


def _weight(bound: Bound) -> float:
    if bound.weight is not None:
        return bound.weight
    return 1.0 if bound.quota is None else float(bound.quota)


def _rest_weight(bound: Bound) -> float:
    return 1.0 if bound.weight is None else bound.weight
