"""Checks of the tree of projects as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.configuration.nodes import Item, nearest
from benchpool_scheduler.configuration.settings import ProjectSettings


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
    found: list[str] = []
    for settings in projects:
        project = settings.project
        children = [p.project for p in projects if p.project.parent == project.name]
        promised = sum(child.quota or 0 for child in children)
        if children and project.quota is not None and promised > project.quota:
            found.append(
                f"The projects below {project.name} are guaranteed {promised} GPUs together, "
                f"{project.name} itself {project.quota}: they cannot all have theirs at once."
            )
        if children and settings.members and settings.each is None:
            found.append(
                f"Project {project.name} has projects below it and holds no jobs itself; its "
                f"{len(settings.members)} members need to belong to one of those."
            )
        if project.limit is not None and (project.quota is None or project.quota > project.limit):
            quota = "unlimited" if project.quota is None else project.quota
            found.append(
                f"Project {project.name} has quota {quota} and limit {project.limit}: "
                f"it never gets more than {project.limit} GPUs."
            )
    return tuple(found)
