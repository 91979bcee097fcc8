"""Membership in projects: access requests, and the decisions of project leads.

An access request is kept in a file of its own until it is granted. Members are part of the
configuration, which is changed in the name of the lead or administrator who decides.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from benchpool_scheduler import contract
from benchpool_scheduler.configuration.nodes import nearest
from benchpool_scheduler.contract.access import AccessAsk, AccessDecision, AccessRequest
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.errors import Forbidden, InvalidInput, NotFound, Refused, Unavailable
from benchpool_scheduler.phrases import one_line
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.access.membership import belongs_to
from benchpool_scheduler.service.administration.reconfiguration import Reconfiguration
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store import access_requests

MOST_OF_USER = 20
"""Maximum number of access requests kept per user."""

Key = tuple[str, str]


OF_GROUPS = (
    "an administrator removes members by group from the group, on the Hub's page Admin or at the "
    "source of the Hub's groups."
)


def _of_leads(asked: AccessDecision) -> str:
    key = shlex.quote(f"projects.{asked.project}.leads-={asked.user}")
    return f"{asked.user} leads it. An administrator ends this with `benchpool config set {key}`."


class ProjectAccess:
    """Access requests, and the members that leads add and remove.

    Args:
        file: File of the access requests.
    """

    def __init__(
        self, observed: SchedulerState, configuration: Reconfiguration, file: Path
    ) -> None:
        self._observed = observed
        self._configuration = configuration
        self._file = file
        self._lock = asyncio.Lock()
        self._kept: dict[Key, AccessRequest] | None = None

    async def requests(self, caller: Caller, user: str | None = None) -> list[AccessRequest]:
        """Return a user's own and decidable access requests, oldest first.

        Errors: NotFound for a caller who is another user.
        """
        rights.require_same_user(caller, user or caller.name)
        reader = caller if user in (None, caller.name) else self._known(user or "")
        async with self._lock:
            found = [self._seen_by(reader, one) for one in (await self._requests()).values()]
        return [one for one in found if one.decides or one.user == reader.name]

    async def ask(self, caller: Caller, asked: AccessAsk) -> AccessRequest:
        """Save an access request; a repeat replaces the first one.

        Errors: InvalidInput for a project without members, Refused.
        """
        self._check_project(asked.project)
        if belongs_to(caller, asked.project, self._observed.now.configuration):
            raise Refused(f"You belong to project {asked.project} already.", code="is-member")
        async with self._lock:
            requests = await self._requests()
            key = (caller.name, asked.project)
            mine = [one for one in requests if one[0] == caller.name and one != key]
            if len(mine) >= MOST_OF_USER:
                raise Refused(
                    f"You have {len(mine)} open access requests, and {MOST_OF_USER} is the limit. "
                    "Wait until one is decided.",
                    code="too-many-access-requests",
                    numbers={"access_requests": len(mine), "limit": MOST_OF_USER},
                )
            at = datetime.fromtimestamp(self._observed.settings.clock.now(), UTC)
            request = AccessRequest(caller.name, asked.project, at, one_line(asked.reason))
            await self._write({**requests, key: request})
        return self._seen_by(caller, request)

    async def decline(self, caller: Caller, asked: AccessDecision) -> AccessRequest:
        """Decline an access request; the requester can read the reason. Errors: Forbidden,
        NotFound.
        """
        self._require_lead(caller, asked.project)
        async with self._lock:
            requests = await self._requests()
            key = (asked.user, asked.project)
            if key not in requests:
                raise NotFound(
                    f"{asked.user} has no access request for project {asked.project}.",
                    field="user",
                )
            reason = one_line(asked.reason) or f"by {caller.name}, without a reason"
            request = replace(requests[key], declined=reason)
            await self._write({**requests, key: request})
        return self._seen_by(caller, request)

    async def add(self, caller: Caller, asked: AccessDecision) -> contract.ConfigurationChange:
        """Add a user to a project, in the caller's name.

        Errors: Forbidden, InvalidInput, Refused; Unavailable when it cannot be written.
        """
        self._require_lead(caller, asked.project)
        self._check_project(asked.project)
        await self._check_user(caller, asked.user)
        settings = self._observed.now.configuration.project(asked.project)
        if settings is not None and asked.user in settings.members:
            # A repeated request changes nothing.
            return contract.ConfigurationChange(applied=True, changes=[])
        change = await self._change(caller, asked, add=[asked.user])
        async with self._lock:
            requests = dict(await self._requests())
            if requests.pop((asked.user, asked.project), None) is not None:
                await self._write(requests)
        return change

    async def remove(self, caller: Caller, asked: AccessDecision) -> contract.ConfigurationChange:
        """Remove a user from a project. Errors: as ``add``."""
        self._require_lead(caller, asked.project)
        settings = self._observed.now.configuration.project(asked.project)
        if settings is None or asked.user not in settings.members:
            if not belongs_to(
                self._known(asked.user), asked.project, self._observed.now.configuration
            ):
                return contract.ConfigurationChange(applied=True, changes=[])
            leads = settings is not None and asked.user in settings.leads
            raise InvalidInput(
                f"{asked.user} is not a member of project {asked.project} by name: "
                + (_of_leads(asked) if leads else OF_GROUPS),
                field="user",
            )
        return await self._change(caller, asked, remove=[asked.user])

    async def _change(
        self,
        caller: Caller,
        asked: AccessDecision,
        add: list[str] | None = None,
        remove: list[str] | None = None,
    ) -> contract.ConfigurationChange:
        setting = Setting(f"projects.{asked.project}.members", add=add or [], remove=remove or [])
        return await self._configuration.set_for(caller, ConfigurationEdit([setting], asked.reason))

    # ------------------------------------------------------------------ checks

    def _check_project(self, name: str) -> None:
        configuration = self._observed.now.configuration
        settings = configuration.project(name)
        if settings is None:
            known = [str(one.name) for one in configuration.projects]
            raise InvalidInput(
                f"There is no project {name!r}{nearest(name, known)}",
                code="no-such-project",
                field="project",
            )
        if configuration.is_parent(name) and settings.personal_projects is None:
            below = ", ".join(configuration.below(name))
            raise InvalidInput(
                f"Project {name} only groups others and has no members; name one of them: {below}.",
                code="project-holds-no-jobs",
                field="project",
            )
        if configuration.is_personal(name):
            raise InvalidInput(
                f"Project {name} was made for {settings.members[0]} alone. Name "
                f"{settings.project.parent}, which makes one for each of its members.",
                code="project-is-personal",
                field="project",
            )

    async def _check_user(self, caller: Caller, user: str) -> None:
        if rights.rules_all(caller):
            return
        if user not in self._observed.now.users.by_name:
            with suppress(Unavailable):  # a new user may be known to the Hub only
                await self._observed.ask_hub()
        known = self._observed.now.users.by_name
        if user not in known:
            raise InvalidInput(
                f"The Hub knows no user {user!r}{nearest(user, list(known)).rstrip('.')}. A new "
                "user must log in first, or be added by an administrator.",
                field="user",
            )

    def _require_lead(self, caller: Caller, project: str) -> None:
        if not self._decides(caller, project):
            raise Forbidden(
                f"Only the leads of project {project}, of a project above it, and administrators "
                f"manage its members; you are {caller.name}.",
                code="not-a-lead",
                field="project",
            )

    def _decides(self, caller: Caller, project: str) -> bool:
        configuration = self._observed.now.configuration
        return rights.rules_all(caller) or rights.leads(caller, project, configuration)

    def _known(self, user: str) -> Caller:
        found = self._observed.now.hub_user(user)
        return Caller(user) if found is None else Caller(user, found.admin, frozenset(found.groups))

    def _seen_by(self, caller: Caller, request: AccessRequest) -> AccessRequest:
        open_ = request.declined is None and request.user != caller.name
        return replace(request, decides=open_ and self._decides(caller, request.project))

    # ------------------------------------------------------------------ the file

    async def _requests(self) -> Mapping[Key, AccessRequest]:
        if self._kept is None:
            self._kept = await asyncio.to_thread(access_requests.read, self._file)
        return {
            key: one
            for key, one in self._kept.items()
            if not belongs_to(self._known(one.user), one.project, self._observed.now.configuration)
        }

    async def _write(self, requests: Mapping[Key, AccessRequest]) -> None:
        try:
            await asyncio.to_thread(access_requests.write, self._file, requests.values())
        except OSError as failed:
            raise Unavailable(
                f"{self._file} cannot be written ({failed.strerror}). Nothing was changed.",
                code="access-file",
            ) from failed
        self._kept = dict(requests)
