"""Personal projects: a project for each member of a project with ``each``.

They are derived from the written configuration and the users, each time one of these changes. They
are not stored: a user who leaves the Hub or the group loses the project.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace

from benchpool_scheduler.configuration.reservations import with_reservations
from benchpool_scheduler.configuration.settings import (
    EVERYBODY,
    Configuration,
    PersonalProject,
    ProjectSettings,
)
from benchpool_scheduler.core.model import Project, ProjectName


def among(user: str, groups: Set[str], people: Iterable[str]) -> bool:
    """Return whether members or leads name a user, directly or by a group.

    >>> among("susan", {"staff"}, ["joe", "group:staff"]), among("susan", set(), ["*"])
    (True, False)
    """
    return any(
        person.removeprefix("group:") in groups if person.startswith("group:") else person == user
        for person in people
    )


def written(configuration: Configuration) -> Configuration:
    """Return a configuration as written, without derived projects and reservations."""
    return configuration.written or configuration


def in_force(
    configuration: Configuration, people: Mapping[str, Set[str]], now: float
) -> Configuration:
    """Return a configuration with the reservations active at ``now`` and the personal projects.

    Args:
        configuration: The configuration at another time, or as written.
    """
    own = written(configuration)
    reserved = with_reservations(own, now)
    found = with_personal(reserved, people)
    if reserved is not own:
        found = replace(found, written=own)
    return configuration if found == configuration and found is not own else found


def with_personal(configuration: Configuration, people: Mapping[str, Set[str]]) -> Configuration:
    """Return a configuration with the personal projects of these users.

    ``people`` maps each user to their groups. ``configuration`` may have personal projects already.

    >>> from benchpool_scheduler.configuration.loader import load
    >>> text = "version: 1\\nprojects: [{name: all, members: ['*'], personal_projects: {limit: 2}}]"
    >>> [str(one.name) for one in with_personal(load(text), {"susan": set()}).projects]
    ['all', 'susan']
    """
    own = written(configuration)
    if not own.offers_personal:
        return own
    made = tuple(_made(own, people))
    found = replace(own, projects=(*own.projects, *made), written=own)
    return configuration if found == configuration else found


def _made(own: Configuration, people: Mapping[str, Set[str]]) -> Iterator[ProjectSettings]:
    taken = {str(settings.name) for settings in own.projects}
    templates = [
        (one, one.personal_projects) for one in own.projects if one.personal_projects is not None
    ]
    for user in sorted(people):
        groups = people[user]
        homeless = not any(
            among(user, groups, (*settings.members, *settings.leads))
            for settings in own.projects
            if not own.is_parent(settings.name)
        )
        for settings, each in templates:
            if among(user, groups, settings.members) or (
                homeless and EVERYBODY in settings.members
            ):
                homeless = False
                name = user if user not in taken else f"{settings.name}-{user}"
                if name not in taken:
                    taken.add(name)
                    yield _personal(settings, each, user, name)


def _personal(
    settings: ProjectSettings, each: PersonalProject, user: str, name: str
) -> ProjectSettings:
    above = settings.project
    project = Project(
        name=ProjectName(name),
        parent=settings.name,
        quota=each.quota,
        limit=each.limit,
        weight=each.weight,
        priority=above.priority,
        min_runtime_s=above.min_runtime_s,
    )
    return ProjectSettings(project, members=(user,), line=settings.line, gpu_hours=each.gpu_hours)
