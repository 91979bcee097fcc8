"""Pages of services: all that the reader may open, one with its replicas, and their actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.serving import PoolService, ServicesQuery, ServiceStop
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import gpu_use
from benchpool_scheduler.service import Services
from benchpool_scheduler.web.pages import FormHandler, PageHandler
from benchpool_scheduler.web.service_view import view


@dataclass(frozen=True, slots=True)
class ServiceAct:
    """Operation on a service that the page offers.

    Attributes:
        done: Message afterwards. ``stops``: administrators must give its owner a reason.
    """

    operation: Operation[Any]
    do: Callable[..., Awaitable[PoolService]]
    done: str
    stops: bool = False


SERVICE_ACTS: Mapping[str, ServiceAct] = {
    "wake": ServiceAct(Operations.wake_service, Services.wake, "The service wakes."),
    "sleep": ServiceAct(
        Operations.sleep_service,
        Services.sleep,
        "The service sleeps after its open requests, within a minute. The next request wakes it.",
    ),
    "stop": ServiceAct(
        Operations.stop_service,
        Services.stop,
        "The service stops after its open requests, within a minute. No request wakes it.",
        stops=True,
    ),
    "restart": ServiceAct(
        Operations.restart_service,
        Services.restart,
        "The replicas are replaced one after the other.",
    ),
    "remove": ServiceAct(
        Operations.remove_service, Services.remove, "The service is removed.", stops=True
    ),
}
"""Operations by their word in addresses."""


class ServicesHandler(PageHandler):
    """``GET <prefix>services``: the reader's own, with ``?all=1`` all that the reader may open."""

    async def get(self) -> None:
        """Show the page."""
        caller = await self.reader()
        all_ = bool(self.get_query_argument("all", ""))
        found = self.site.pool.services.select(caller, ServicesQuery(all=all_))
        now = self.site.now()
        await self.show(
            "services.html",
            self.facts(back="services"),
            all=all_,
            views=[view(one, now) for one in found],
            message=SERVICE_ACTS["remove"].done if self.get_query_argument("removed", "") else "",
        )


class ServiceHandler(PageHandler):
    """``GET <prefix>services/<name>``."""

    async def get(self, service: str) -> None:
        """Show the page. Errors: NotFound for services that the reader may not open."""
        caller = await self.reader()
        found = self.site.pool.services.show(caller, service)
        act = SERVICE_ACTS.get(self.get_query_argument("did", ""))
        await self.show(
            "service.html",
            self.facts(),
            view=view(found, self.site.now()),
            gpu_use=gpu_use,
            message="" if act is None else act.done,
            reasons=caller.admin and caller.name != found.user,
        )


class ServiceActHandler(FormHandler):
    """``POST <prefix>services/<name>/<act>`` with the page's XSRF token."""

    PAGE = "services/{service}"

    async def post(self, service: str, act: str) -> None:
        """Run the action, then redirect to the page. Errors: NotFound, Forbidden, Unavailable."""
        caller = await self.reader()
        self.refuse_forged()
        pool, wanted = self.site.pool, SERVICE_ACTS[act]
        body = None
        try:
            if wanted.stops:
                reason = " ".join(self.get_body_argument("reason", "").split())
                body = decoding.query({"reason": [reason]}, ServiceStop)
                answer = await wanted.do(pool.services, caller, service, body.reason)
            else:
                answer = await wanted.do(pool.services, caller, service)
        except BenchpoolError as refused:
            audit.note(pool, wanted.operation, caller, self, refused)
            raise
        path = {"service": service}
        await pool.audit.record(
            audit.done(wanted.operation, caller, self.request, path, body, answer, None)
        )
        if act == "remove":
            self.redirect(f"{self.site.root}services?removed=1", status=303)
        else:
            query = urlencode({"did": act})
            self.redirect(f"{self.site.root}services/{service}?{query}", status=303)
