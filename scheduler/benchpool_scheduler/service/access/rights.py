"""Permissions: the only module that decides what a caller may see and do.

A job belongs to its user. Leads of its project, or of a project above it, see, pause, resume and
cancel it. Administrators and services have all permissions. A job that the caller may not see is
reported as not found.
"""

from __future__ import annotations

from benchpool_scheduler.configuration import Configuration, among
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.store.records import JobRecord, LeaseRecord


def rules_all(caller: Caller) -> bool:
    """Return whether the caller may see and do everything."""
    return caller.admin or caller.kind in ("service", "cluster")


def may_lift(caller: Caller) -> bool:
    """Return whether the caller may resume a job that an administrator paused.

    Only administrators may.
    """
    return caller.admin


def is_among(caller: Caller, people: tuple[str, ...]) -> bool:
    """Return whether the caller is one of these users or belongs to one of these groups."""
    return among(caller.name, caller.groups, people)


def leads(caller: Caller, project: str, configuration: Configuration) -> bool:
    """Return whether the caller leads a project or one above it."""
    return any(is_among(caller, above.leads) for above in configuration.upwards(project))


def led_projects(caller: Caller, configuration: Configuration) -> tuple[str, ...]:
    """Return the projects that the caller leads, and the projects below them."""
    led: dict[str, bool] = {}
    for settings in configuration.projects:
        for above in configuration.upwards(settings.name):
            found = led.get(above.name) or is_among(caller, above.leads)
            if found:
                led[settings.name] = True
                break
    return tuple(led)


def may_use(caller: Caller, job: JobRecord, configuration: Configuration) -> bool:
    """Return whether the caller may see a job, read its logs, pause, resume and cancel it.

    Seeing a job and acting on it are one permission.
    """
    return may_use_of(caller, job.user, job.project, configuration)


def may_use_of(caller: Caller, user: str, project: str, configuration: Configuration) -> bool:
    """Return the same as ``may_use`` for a job of which only the user and project are known."""
    return _belongs(caller, user) or leads(caller, project, configuration)


def require_may_change_service(
    caller: Caller, user: str, project: str, configuration: Configuration
) -> None:
    """Refuse a caller who may only open a service. Errors: Forbidden."""
    if not may_use_of(caller, user, project, configuration):
        raise Forbidden(
            f"This is a service of {user}: you may open it; {user}, leads of project {project} and "
            "administrators may change it."
        )


def require_owner_of_service(caller: Caller, user: str, *, by_service: bool) -> None:
    """Refuse callers other than the owner to replace what a service runs. Errors: Forbidden.

    The service runs as its owner.
    """
    if caller.name != user or (caller.kind == "service") is not by_service:
        raise Forbidden(
            f"This service of {user} runs its program as {user}: only {user} may "
            "replace it. You may stop, restart and remove it."
        )


def may_see_use(caller: Caller, user: str, project: str, configuration: Configuration) -> bool:
    """Return whether the caller may see a user's GPU use, in a project or on a bench.

    Use without a user is visible only to callers who see everything.
    """
    return bool(user) and may_use_of(caller, user, project, configuration)


def may_use_lease(caller: Caller, lease: LeaseRecord) -> bool:
    """Return whether the caller may see a lease."""
    return may_see_bench(caller, lease.user)


def require_owner_of_lease(caller: Caller, lease: LeaseRecord, action: str) -> None:
    """Refuse callers other than the owner of a bench. Errors: Forbidden.

    The owner may use any of their own tokens.
    """
    if caller.kind != "user" or caller.name != lease.user:
        raise Forbidden(f"This is {lease.user}'s bench: only {lease.user} may {action}.")


def require_owner_of_job(caller: Caller, job: JobRecord, action: str) -> None:
    """Refuse callers other than the owner of a job, even if they may see it. Errors: Forbidden."""
    if caller.kind != "user" or caller.name != job.user:
        raise Forbidden(f"This is {job.user}'s job: only {job.user} may {action}.")


def may_see_bench(caller: Caller, user: str) -> bool:
    """Return whether the caller may see a user's benches and their place in the bench queue."""
    return _belongs(caller, user)


def _belongs(caller: Caller, user: str) -> bool:
    return rules_all(caller) or (caller.kind == "user" and caller.name == user)


def no_job(name: str) -> NotFound:
    """Return the error for a job that does not exist or that the caller may not see."""
    return NotFound(
        f"There is no job with the id {name[:40]!r} that you may see; `benchpool jobs --all` lists "
        "ids.",
        field="id",
    )


def require_admin(caller: Caller, action: str) -> None:
    """Refuse callers other than administrators and services. Errors: Forbidden."""
    if not rules_all(caller):
        raise Forbidden(f"Only an administrator may {action}; you are {caller.name}.")


STOPS = frozenset({"pause", "cancel"})
"""Actions that need a reason when an administrator applies them to another user's job."""


def require_reason(
    caller: Caller, owner: str, action: str, reason: str | None, what: str = "job"
) -> None:
    """Refuse to stop another user's job without a reason. Errors: InvalidInput ``reason-missing``.

    Services need no reason: the user behind the request has given it elsewhere.
    """
    others = caller.kind == "user" and caller.admin and caller.name != owner
    if others and action in STOPS and not (reason or "").strip():
        raise InvalidInput(
            f"This {what} belongs to {owner}, who is shown the reason. Give a short reason with "
            f"--reason, or on the {what}'s page.",
            code="reason-missing",
            field="reason",
        )


def require_same_user(caller: Caller, user: str) -> None:
    """Refuse information about another user. Errors: NotFound."""
    if not _belongs(caller, user):
        raise NotFound(f"There is no user {user[:100]!r} that you may see.", field="user")
