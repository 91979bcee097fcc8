"""Operations on project membership: request access, add, remove, decline."""

from __future__ import annotations

from benchpool_scheduler.contract.access import AccessAsk, AccessDecision, AccessRequest
from benchpool_scheduler.contract.configuration import ConfigurationChange
from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import Given, Who, given, operation
from benchpool_scheduler.contract.pool import UserQuery

_WHOM = ("project", "user")


class AccessOperations:
    """Membership of projects."""

    @operation(
        "GET",
        "access",
        list[AccessRequest],
        query=UserQuery,
        lab=True,
        verb=PlainVerb(
            ("access",),
            "List access requests: your own, and those that you may decide.",
            hidden=("user",),
        ),
    )
    def access(self, user: str | None = None) -> Given:
        """List access requests to projects.

        Your own, and those that you may decide: leads for their projects, administrators for all.
        """
        return given(query={"user": user})

    @operation(
        "POST",
        "access/ask",
        AccessRequest,
        body=AccessAsk,
        lab=True,
        verb=PlainVerb(
            ("access", "ask"),
            "Request access to a project; its leads and administrators see the request.",
            positional=("project",),
        ),
    )
    def ask_access(self, project: str, reason: str | None = None) -> Given:
        """Request access to a project.

        Its leads and the administrators see the request.
        """
        return given(AccessAsk(project, reason))

    @operation(
        "POST",
        "access/add",
        ConfigurationChange,
        who=Who.LEAD,
        body=AccessDecision,
        lab=True,
        verb=PlainVerb(
            ("access", "add"),
            "Add a user to a project that you lead.",
            "No access request is needed. The configuration is changed in your name.",
            positional=_WHOM,
        ),
    )
    def add_member(self, project: str, user: str, reason: str | None = None) -> Given:
        """Add a user to a project.

        For leads of the project and administrators. The change is written to the configuration in
        the caller's name.
        """
        return given(AccessDecision(project, user, reason))

    @operation(
        "POST",
        "access/remove",
        ConfigurationChange,
        who=Who.LEAD,
        body=AccessDecision,
        lab=True,
        verb=PlainVerb(
            ("access", "remove"),
            "Remove a user from a project that you lead.",
            positional=_WHOM,
        ),
    )
    def remove_member(self, project: str, user: str, reason: str | None = None) -> Given:
        """Remove a user from a project."""
        return given(AccessDecision(project, user, reason))

    @operation(
        "POST",
        "access/decline",
        AccessRequest,
        who=Who.LEAD,
        body=AccessDecision,
        lab=True,
        verb=PlainVerb(
            ("access", "decline"),
            "Decline an access request to a project that you lead, with a reason.",
            positional=_WHOM,
        ),
    )
    def decline_access(self, project: str, user: str, reason: str | None = None) -> Given:
        """Decline an access request to a project.

        The requesting user sees the reason.
        """
        return given(AccessDecision(project, user, reason))
