"""Namespaces whose pods are admitted, as listed by an administrator."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from benchpool_scheduler.errors import InvalidInput


class AdmittedNamespace(Struct, frozen=True, forbid_unknown_fields=True):
    """A namespace whose pods are admitted.

    Attributes:
        project: Project whose quota its pods use, unless they name one of ``projects``.
        user: Hub user who is responsible for the pods; their jobs belong to this user.
        projects: Other projects that a pod may name in its annotation ``benchpool.io/project``.
    """

    name: str
    project: str
    user: str
    projects: tuple[str, ...] = ()

    def project_of(self, asked: str) -> str | None:
        """Return the project for a pod that names this one, or None if it is not allowed.

        >>> space = AdmittedNamespace("team-a", "vision", "susan", ("speech",))
        >>> space.project_of(""), space.project_of("speech"), space.project_of("chemistry")
        ('vision', 'speech', None)
        """
        if not asked:
            return self.project
        return asked if asked in (self.project, *self.projects) else None


def read_namespaces(text: str) -> tuple[AdmittedNamespace, ...]:
    """Read the list from JSON; an empty text lists none. Raises InvalidInput.

    >>> read_namespaces('[{"name": "team-a", "project": "vision", "user": "susan"}]')[0].user
    'susan'
    >>> read_namespaces("")
    ()
    """
    if not text.strip():
        return ()
    try:
        found = msgspec.json.decode(text, type=tuple[AdmittedNamespace, ...])
    except msgspec.DecodeError as bad:
        raise InvalidInput(
            f"The list of admitted namespaces cannot be read: {bad}. It is a list of "
            '{"name", "project", "user", "projects"}.',
            field="admitted_namespaces",
        ) from bad
    for one in found:
        if not (one.name and one.project and one.user):
            raise InvalidInput(
                f"The admitted namespace {one.name!r} needs a name, a project and a user.",
                field="admitted_namespaces",
            )
    twice = sorted(_twice(one.name for one in found))
    if twice:
        raise InvalidInput(
            f"The admitted namespace {twice[0]} is listed twice. List it once with `projects`.",
            field="admitted_namespaces",
        )
    return found


def _twice(names: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    return {name for name in names if name in seen or seen.add(name)}  # type: ignore[func-returns-value]
