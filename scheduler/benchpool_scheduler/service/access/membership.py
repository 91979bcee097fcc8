"""Projects of a caller, the project of a submission, and access to services."""

from __future__ import annotations

import shlex

from benchpool_scheduler.configuration import EVERYBODY, Configuration, ProjectSettings
from benchpool_scheduler.configuration.nodes import nearest
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.serving import ServiceAccess
from benchpool_scheduler.errors import Forbidden, InvalidInput, Refused
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.access.rights import is_among, leads, may_use_of, rules_all
from benchpool_scheduler.store.service_files import ServiceRecord


def usable_projects(caller: Caller, configuration: Configuration) -> tuple[ProjectSettings, ...]:
    """Return the projects to which the caller can submit jobs, without parent projects.

    A user who belongs to no project by name or group belongs to the projects for everyone.
    """
    named = tuple(
        settings
        for settings in configuration.projects
        if _is_usable(caller, settings, configuration)
    )
    if named or caller.kind != "user":
        return named
    return tuple(
        settings
        for settings in configuration.projects
        if EVERYBODY in settings.members and not configuration.is_parent(settings.name)
    )


def belongs_to(caller: Caller, project: str, configuration: Configuration) -> bool:
    """Return whether the caller is a member or a lead of a project, by name or group."""
    settings = configuration.project(project)
    return settings is not None and is_among(caller, (*settings.members, *settings.leads))


def may_open_service(caller: Caller, service: ServiceRecord, configuration: Configuration) -> bool:
    """Return whether the caller may open the address of a user's service.

    Callers who may change the service may open it. Its access setting decides about all other
    users.
    """
    if may_use_of(caller, service.user, service.project, configuration):
        return True
    match service.access:
        case ServiceAccess.OWNER:
            return False
        case ServiceAccess.PROJECT:
            mine = {str(it.name) for it in usable_projects(caller, configuration)}
            return caller.kind == "user" and service.project in mine
        case ServiceAccess.GROUP:
            return caller.kind == "user" and service.group in caller.groups
        case ServiceAccess.EVERYONE:
            return caller.kind == "user"


def _is_usable(caller: Caller, settings: ProjectSettings, configuration: Configuration) -> bool:
    belongs = is_among(caller, (*settings.members, *settings.leads))
    return belongs and not configuration.is_parent(settings.name)


def project_of(
    caller: Caller, submission: JobSubmission, configuration: Configuration
) -> ProjectSettings:
    """Return the project of a submission. Errors: InvalidInput, Forbidden, Refused."""
    if submission.project is not None:
        named = configuration.project(submission.project)
        if named is not None and _is_usable(caller, named, configuration):
            return named
    own = usable_projects(caller, configuration)
    if submission.project is not None:
        return _named_project(caller, submission.project, own, configuration)
    if len(own) == 1:
        return own[0]
    if not own:
        raise Refused(
            f"{caller.name} belongs to no project, so the job has no quota. "
            f"Request access to one with {_asking()}.",
            code="no-project",
            field="project",
        )
    names = ", ".join(settings.name for settings in own)
    raise InvalidInput(
        f"You belong to {len(own)} projects ({names}). Name one of them as the job's project, in a "
        "terminal with --project.",
        code="ambiguous-project",
        field="project",
        numbers={"projects": len(own)},
    )


def _named_project(
    caller: Caller, name: str, own: tuple[ProjectSettings, ...], configuration: Configuration
) -> ProjectSettings:
    settings = configuration.project(name)
    if settings is None:
        known = [p.name for p in own] or [p.name for p in configuration.projects]
        raise InvalidInput(
            f"There is no project {name!r}{nearest(name, known)}",
            code="no-such-project",
            field="project",
        )
    if configuration.is_parent(name):
        raise InvalidInput(
            f"Project {name} only groups others; {_one_below(caller, name, own, configuration)}",
            code="project-holds-no-jobs",
            field="project",
        )
    may = settings in own or rules_all(caller) or leads(caller, name, configuration)
    if not may:
        names = ", ".join(p.name for p in own) or "none"
        way = f"Ask its leads with {_asking(name)}."
        if configuration.is_personal(name):
            way = f"It belongs to {settings.members[0]} alone: {_instead(own)}."
        raise Forbidden(
            f"You are not a member of project {name}; yours: {names}. {way}",
            code="not-a-member",
            field="project",
        )
    return settings


def _one_below(
    caller: Caller, name: str, own: tuple[ProjectSettings, ...], configuration: Configuration
) -> str:
    """Return which projects below a parent project accept the caller's job, or how to join one."""
    mine = [p.name for p in own if any(it.name == name for it in configuration.upwards(p.name))]
    below = configuration.below(name)
    if mine:
        return f"send the job to one of your projects below it: {', '.join(mine)}."
    led = [it for it in below if rules_all(caller) or leads(caller, it, configuration)]
    if taken := [it for it in led if configuration.holds_jobs(it)]:
        return f"send the job to one of them: {', '.join(taken)}."
    if below:
        return f"you belong to none of them ({', '.join(below)}). Request access with {_asking()}."
    return f"you have no project below it. Request one with {_asking(name)}."


def _instead(own: tuple[ProjectSettings, ...]) -> str:
    if not own:
        return f"request access to one with {_asking()}"
    return "name one of yours, or none" if len(own) == 1 else "name one of yours"


def _asking(project: str = "PROJECT") -> str:
    return f"`benchpool access ask {shlex.quote(project)}` or on the pool's page"
