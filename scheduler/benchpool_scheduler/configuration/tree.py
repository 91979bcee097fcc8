"""Checks of the whole project tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchpool_scheduler.configuration.nodes import Item, nearest
from benchpool_scheduler.configuration.settings import ProjectSettings
from benchpool_scheduler.core.model import Project, ProjectName

MOST_DEPTH = 16
"""Maximum depth of the project tree."""


def check_tree(projects: Sequence[ProjectSettings], places: Sequence[Item]) -> None:
    """Reject duplicate names, missing parents, cycles, and trees that are too deep.

    Args:
        places: The list entries of the projects.

    Errors: InvalidInput.
    """
    first: dict[str, Item] = {}
    for settings, place in zip(projects, places, strict=True):
        if settings.name in first:
            place.wrong(
                f"has the name {settings.name!r} of the project on line "
                f"{first[settings.name].line}; names must be unique.",
                first_line=first[settings.name].line,
            )
        first[settings.name] = place
    parents: dict[str, str | None] = {p.name: p.project.parent for p in projects}
    for settings, place in zip(projects, places, strict=True):
        parent = settings.project.parent
        if parent is not None and parent not in parents:
            others = [name for name in parents if name != settings.name]
            place.wrong(
                f"has the parent {parent!r}, which is not a project{nearest(parent, others)}"
            )
        path = _upwards(settings.name, parents)
        if settings.name in path[1:]:
            place.wrong(f"is its own ancestor ({' in '.join(path)}); break the cycle.")
        if len(path) > MOST_DEPTH:
            place.wrong(
                f"has more than {MOST_DEPTH - 1} projects above it; make the tree flatter.",
                limit=MOST_DEPTH,
            )


def _upwards(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """Return a project and its ancestors, up to one level more than allowed.

    A cycle ends where it closes.
    """
    path, above = [name], parents[name]
    while above is not None and above in parents and len(path) <= MOST_DEPTH:
        path.append(above)
        if above == name:
            break
        above = parents[above]
    return path


def tree_warnings(projects: Sequence[ProjectSettings]) -> tuple[str, ...]:
    """Return warnings about settings that are allowed but probably not intended."""
    below: dict[ProjectName | None, list[Project]] = {}
    for settings in projects:
        below.setdefault(settings.project.parent, []).append(settings.project)
    found: list[str] = []
    for settings in projects:
        children = below.get(settings.name, [])
        found += _void_guarantees(settings, children)
        if children and settings.members and settings.personal_projects is None:
            found.append(
                f"Project {settings.name} has projects below it and holds no jobs itself; its "
                f"{len(settings.members)} members must belong to one of those."
            )
    return tuple(found)


RESOURCES = ("GPUs", "CPUs", "GiB of memory")


def _void_guarantees(settings: ProjectSettings, below: Sequence[Project]) -> Iterator[str]:
    """Yield a sentence for each guarantee that a project's own quota or limit makes void (R4).

    They bind all projects below, so they are compared with the quotas of the next level.
    """
    above = settings.project
    for resource, unit in enumerate(RESOURCES):
        quota, limit = _bounds(above, resource)
        if limit is not None and (quota is None or quota > limit):
            quota_text = "unlimited" if quota is None else f"{quota:g}"
            yield (
                f"Project {above.name} has quota {quota_text} and limit {limit:g}: "
                f"it never gets more than {limit:g} {unit}."
            )
        most = min((it for it in (quota, limit) if it is not None), default=None)
        each = (
            settings.personal_projects.quota
            if settings.personal_projects is not None and resource == 0
            else 0
        )
        if most is not None and each is not None and each > most:
            yield (
                f"Each member of project {above.name} is guaranteed {each} GPUs, but {above.name} "
                f"itself only {most:g}: no member can get the full guarantee."
            )
        named = {it.name: own for it in below if (own := _bounds(it, resource)[0])}
        promised = sum(named.values())
        if most is not None and promised > most:
            yield (
                f"The projects below {above.name} are guaranteed {promised:g} {unit} together "
                f"({largest(named)}), but {above.name} itself only {most:g}: the excess has no "
                "effect."
            )


MOST_NAMED = 4


def largest(quotas: Mapping[ProjectName, float]) -> str:
    """Return the largest quotas by name, and the sum of all others.

    >>> largest({"a": 1, "b": 7})
    'b 7, a 1'
    """
    ranked = sorted(quotas.items(), key=lambda it: -it[1])
    named = [f"{name} {quota:g}" for name, quota in ranked[:MOST_NAMED]]
    if rest := ranked[MOST_NAMED:]:
        named.append(f"{len(rest)} others {sum(quota for _, quota in rest):g}")
    return ", ".join(named)


def _bounds(project: Project, resource: int) -> tuple[float | None, float | None]:
    """Return quota and limit of one resource, None for no limit."""
    if resource == 0:
        return project.quota, project.limit
    bound = (project.cpus, project.memory_gib)[resource - 1]
    return bound.quota, bound.limit
