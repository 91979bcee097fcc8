"""Checks of the tree of projects as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchpool_scheduler.configuration.nodes import Item, nearest
from benchpool_scheduler.configuration.settings import ProjectSettings
from benchpool_scheduler.core.model import Project


def check_tree(projects: Sequence[ProjectSettings], places: Sequence[Item]) -> None:
    """Refuse names that repeat, parents that do not exist, and circles.

    ``places`` are the list entries of the projects. Errors: InvalidInput.
    """
    first: dict[str, Item] = {}
    for settings, place in zip(projects, places, strict=True):
        if settings.name in first:
            place.wrong(
                f"has the name {settings.name!r} of the project on line "
                f"{first[settings.name].line}; names must be different.",
                first_line=first[settings.name].line,
            )
        first[settings.name] = place
    parents: dict[str, str | None] = {p.name: p.project.parent for p in projects}
    for settings, place in zip(projects, places, strict=True):
        parent = settings.project.parent
        if parent is not None and parent not in parents:
            others = [name for name in parents if name != settings.name]
            place.wrong(f"has the parent {parent!r}, which is no project{nearest(parent, others)}")
        circle = _circle(settings.name, parents)
        if circle:
            place.wrong(f"is its own ancestor ({' in '.join(circle)}); break the circle.")


def _circle(name: str, parents: dict[str, str | None]) -> list[str]:
    path = [name]
    above = parents[name]
    while above is not None and above in parents:
        path.append(above)
        if above == name:
            return path
        if path.count(above) > 1:
            # A circle further up; it is reported where it is.
            return []
        above = parents[above]
    return []


def tree_warnings(projects: Sequence[ProjectSettings]) -> tuple[str, ...]:
    """Return sentences about what is allowed but probably not meant."""
    found = [*_void_guarantees(projects)]
    for settings in projects:
        project = settings.project
        children = [p.project for p in projects if p.project.parent == project.name]
        if children and settings.members and settings.each is None:
            found.append(
                f"Project {project.name} has projects below it and holds no jobs itself; its "
                f"{len(settings.members)} members need to belong to one of those."
            )
    return tuple(found)


RESOURCES = ("GPUs", "CPUs", "GiB of memory")


def _void_guarantees(projects: Sequence[ProjectSettings]) -> Iterator[str]:
    """Yield a sentence for each guarantee that a bound above it, or its own limit, makes void (R4).

    Bounds of a project bind all below it, so each is compared with the quotas of the next level.
    """
    for settings in projects:
        above = settings.project
        below = [it.project for it in projects if it.project.parent == above.name]
        for resource, unit in enumerate(RESOURCES):
            quota, limit = _bounds(above, resource)
            if limit is not None and (quota is None or quota > limit):
                said = "unlimited" if quota is None else f"{quota:g}"
                yield (
                    f"Project {above.name} has quota {said} and limit {limit:g}: "
                    f"it never gets more than {limit:g} {unit}."
                )
            most = min((it for it in (quota, limit) if it is not None), default=None)
            each = settings.each.quota if settings.each is not None and resource == 0 else 0
            if most is not None and each is not None and each > most:
                yield (
                    f"Each member of project {above.name} is guaranteed {each} GPUs, and "
                    f"{above.name} itself {most:g}: no member can have theirs in full."
                )
            named = {it.name: own for it in below if (own := _bounds(it, resource)[0])}
            promised = sum(named.values())
            if most is not None and promised > most:
                listed = ", ".join(f"{name} {quota:g}" for name, quota in named.items())
                yield (
                    f"The projects below {above.name} are guaranteed {promised:g} {unit} together "
                    f"({listed}), {above.name} itself {most:g}: what is beyond that is void."
                )


def _bounds(project: Project, resource: int) -> tuple[float | None, float | None]:
    """Return quota and limit of one resource, None for no bound."""
    if resource == 0:
        return project.quota, project.limit
    bound = (project.cpus, project.memory_gib)[resource - 1]
    return bound.quota, bound.limit
