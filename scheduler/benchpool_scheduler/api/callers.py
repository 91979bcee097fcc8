"""Identification of callers, and access checks by the table of operations."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Protocol

from tornado.web import RequestHandler

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.contract.operation import Operation, Who
from benchpool_scheduler.errors import Forbidden, NotAuthenticated
from benchpool_scheduler.service import Caller

ANONYMOUS = Caller("")
MONITOR = Caller("monitor")
"""Caller with the metrics token. Compared by identity, because a user may have the same name."""


WORDS = {
    Who.ADMIN: "an administrator",
    Who.OPERATOR: "the Hub's services and administrators",
    Who.MONITOR: "monitoring, the Hub's services and administrators",
    Who.NODE: "the agent of a node, with a token of its pod,",
}


class NodeIdentity(Protocol):
    """Identifies the nodes of agents."""

    async def node(self, token: str) -> str | None:
        """Return the node of the pod with this token. None for any other token.

        Raises:
            Unavailable: The identity service does not answer.
        """


@dataclass(frozen=True, slots=True)
class Callers:
    """Identifies the callers of operations.

    Attributes:
        identity: Identifies users and services of the Hub.
        metrics_token: Grants access to the metrics only, even while the Hub is down. Empty for
            none.
        nodes: Identifies node agents. None if there are none.
    """

    identity: Identity
    metrics_token: str = ""
    nodes: NodeIdentity | None = None

    async def of(self, handler: RequestHandler, operation: Operation[object]) -> Caller:
        """Return the caller of an operation.

        Raises:
            NotAuthenticated: The caller is unknown.
            Forbidden: A browser session without its page's XSRF token.
            Unavailable: The Hub does not answer.
        """
        if operation.who is Who.PUBLIC:
            return ANONYMOUS
        if operation.who is Who.MONITOR and shows(
            self.metrics_token, handler.request.headers.get("Authorization", "")
        ):
            return MONITOR
        if operation.who is Who.NODE and self.nodes is not None:
            return await self._agent(self.nodes, handler)
        caller = await self.identity.authenticate(handler)
        if caller is None:
            raise NotAuthenticated(
                "This needs a token of the Hub. Get one on the Hub's page Token and send it as "
                "`Authorization: token …`."
            )
        return caller

    async def _agent(self, nodes: NodeIdentity, handler: RequestHandler) -> Caller:
        _, _, token = handler.request.headers.get("Authorization", "").partition(" ")
        node = await nodes.node(token.strip()) if token else None
        if node is None:
            raise NotAuthenticated("This needs the token of the agent of a node.")
        named = handler.path_kwargs.get("node")
        if named != node:
            raise Forbidden(f"The agent of {node} may not report for {named}.")
        return Caller(f"agent of {node}", kind="node")


def shows(token: str, authorization: str) -> bool:
    """Return whether an ``Authorization`` header carries this token. False for an empty token.

    >>> shows("secret", "Bearer secret"), shows("secret", "Bearer other"), shows("", "Bearer ")
    (True, False, False)
    """
    scheme, _, shown = authorization.partition(" ")
    known = scheme.lower() in ("bearer", "token") and bool(token)
    return known and hmac.compare_digest(shown.strip().encode(), token.encode())


def allowed(who: Who, caller: Caller) -> bool:
    """Return whether a caller may use a route.

    >>> allowed(Who.OPERATOR, Caller("hub", kind="service")), allowed(Who.ADMIN, Caller("susan"))
    (True, False)
    >>> allowed(Who.MONITOR, MONITOR), allowed(Who.CALLER, MONITOR)
    (True, False)
    >>> allowed(Who.NODE, Caller("n0", kind="node")), allowed(Who.NODE, Caller("a", admin=True))
    (True, False)
    """
    match who:
        case Who.ADMIN:
            return caller.admin
        case Who.OPERATOR:
            return caller.admin or caller.kind == "service"
        case Who.MONITOR:
            return caller is MONITOR or allowed(Who.OPERATOR, caller)
        case Who.NODE:
            return caller.kind == "node"
    return caller is not MONITOR and caller.kind != "node"


def refuse_others(who: Who, caller: Caller) -> None:
    """Raise ``Forbidden`` if a caller may not use an operation."""
    if not allowed(who, caller):
        raise Forbidden(f"Only {WORDS[who]} may do this; {caller.name} may not.")
