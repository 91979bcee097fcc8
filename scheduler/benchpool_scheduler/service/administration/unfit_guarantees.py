"""Check that the pool can hold the guaranteed quotas of all projects together (R4)."""

from __future__ import annotations

from benchpool_scheduler.configuration import Configuration, ProjectSettings
from benchpool_scheduler.configuration.tree import largest
from benchpool_scheduler.core.model import Project
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count


def refuse_more(new: Configuration, old: Configuration, gpus: int) -> None:
    """Refuse a change that guarantees more GPUs than there are; an unchanged excess is accepted.

    Args:
        old: The configuration in force.
        gpus: GPUs for training, without those set aside for benches.

    Errors: InvalidInput.
    """
    if _promised(new) > _promised(old) or old.oversubscribe:
        refuse(new, gpus)


def refuse(configuration: Configuration, gpus: int) -> None:
    """Refuse quotas that add up to more GPUs than training has, unless ``oversubscribe`` is on.

    A project below another one counts within it. An unlimited quota counts as 0.

    Errors: InvalidInput.
    """
    promised = _promised(configuration)
    if configuration.oversubscribe or promised <= gpus:
        return
    tops = _tops(configuration)
    line = max(tops, key=lambda it: _guaranteed(it.project)).line or None
    quotas = {it.name: _guaranteed(it.project) for it in tops}
    place = configuration.source if line is None else f"{configuration.source}, line {line}"
    raise InvalidInput(
        f"{place}: the projects are guaranteed {count(promised, 'GPU')} together "
        f"({largest(quotas)}) and training has {count(gpus, 'GPU')}; lower a quota, or set "
        "policy.oversubscribe to true.",
        code="guarantees-oversubscribed",
        field="projects",
        numbers={"guaranteed": promised, "gpus": gpus, "line": line},
    )


def _tops(configuration: Configuration) -> list[ProjectSettings]:
    return [it for it in configuration.projects if it.project.parent is None]


def _promised(configuration: Configuration) -> int:
    return sum(_guaranteed(it.project) for it in _tops(configuration))


def _guaranteed(project: Project) -> int:
    """Return the GPUs that a project may claim: its quota within its limit, 0 if unlimited."""
    if project.quota is None:
        return 0
    return project.quota if project.limit is None else min(project.quota, project.limit)
