"""Access requests on the pool's page: request, add a member, decline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Struct

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.configuration import EVERYBODY
from benchpool_scheduler.contract.access import AccessAsk, AccessDecision, AccessRequest
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.access.membership import belongs_to
from benchpool_scheduler.web.pages import FormHandler
from benchpool_scheduler.web.words import Moment, moment

VERBS: Mapping[str, tuple[Operation[Any], type[Struct]]] = {
    "ask": (Operations.ask_access, AccessAsk),
    "add": (Operations.add_member, AccessDecision),
    "decline": (Operations.decline_access, AccessDecision),
}
"""Operations of the page, by their word in its addresses."""


Act = Callable[[Caller, Any], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class AccessRow:
    """One access request as the page shows it."""

    request: AccessRequest
    at: Moment


@dataclass(frozen=True, slots=True)
class AccessView:
    """Section of access requests: ``open`` are for the reader to decide, ``own`` are the
    reader's.
    """

    open: tuple[AccessRow, ...]
    own: tuple[AccessRow, ...]
    projects: tuple[str, ...]


async def access_view(pool: Pool, caller: Caller, now: datetime) -> AccessView:
    """Return the access requests for a reader, and the projects that the reader may request."""
    found = [AccessRow(one, moment(one.at, now)) for one in await pool.access.requests(caller)]
    configuration = pool.observed.now.configuration
    personal = {
        str(one.name) for one in configuration.projects if one.personal_projects is not None
    }
    could = [
        str(one.name)
        for one in configuration.projects
        if (str(one.name) in personal or not configuration.is_parent(one.name))
        and one.project.parent not in personal
        and (EVERYBODY not in one.members or str(one.name) in personal)
        and not belongs_to(caller, one.name, configuration)
    ]
    return AccessView(
        open=tuple(row for row in found if row.request.decides),
        own=tuple(row for row in found if row.request.user == caller.name),
        projects=() if caller.admin or caller.kind != "user" else tuple(could),
    )


class AccessHandler(FormHandler):
    """``POST <prefix>access/<request>`` with the page's XSRF token."""

    PAGE = "#access"

    async def post(self, request: str) -> None:
        """Run the operation, then redirect to the section."""
        caller = await self.reader()
        self.refuse_forged()
        (operation, type_), pool = VERBS[request], self.site.pool
        names = type_.__struct_fields__
        texts = {name: " ".join(self.get_body_argument(name, "").split()) for name in names}
        body = decoding.query({name: [text] for name, text in texts.items() if text}, type_)
        act: Mapping[str, Act] = {
            "ask": pool.access.ask,
            "add": pool.access.add,
            "decline": pool.access.decline,
        }
        try:
            after = await act[request](caller, body)
        except BenchpoolError as error:
            audit.note(pool, operation, caller, self, error)
            raise
        await pool.audit.record(audit.done(operation, caller, self.request, {}, body, after, None))
        self.redirect(f"{self.site.root}#access", status=303)
