"""Who calls, and which callers may use an operation at all, by what the table says."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Protocol

from tornado.web import RequestHandler

from benchpool_scheduler.api.identity import Identity
from benchpool_scheduler.contract.operation import Operation, Who
from benchpool_scheduler.errors import Forbidden, NotAuthenticated
from benchpool_scheduler.service import Caller

NOBODY = Caller("")
MONITOR = Caller("monitor")
"""Whoever shows the metrics token: this very object, for a user may have the name."""


WORDS = {
    Who.ADMIN: "an administrator",
    Who.OPERATOR: "the Hub's services and administrators",
    Who.MONITOR: "what gathers figures, the Hub's services and administrators",
    Who.NODE: "the agent of a node of the cluster, by a token of its pod,",
}


class NodeIdentity(Protocol):
    """Tells on which node an agent is."""

    async def node(self, token: str) -> str | None:
        """Return the node of the pod whose token this is; None for any other token.

        Errors: Unavailable, where who knows does not answer.
        """


@dataclass(frozen=True, slots=True)
class Callers:
    """Tells who calls.

    Attributes:
        identity: Knows the people and services of the Hub.
        metrics_token: Opens the figures and nothing else, also while the Hub is away; empty for
            none.
        nodes: Knows the agents of nodes; None where there are none.
    """

    identity: Identity
    metrics_token: str = ""
    nodes: NodeIdentity | None = None

    async def of(self, handler: RequestHandler, operation: Operation[object]) -> Caller:
        """Return who calls an operation.

        Raises:
            NotAuthenticated: Nobody that is known.
            Forbidden: A browser session without its page's XSRF token.
            Unavailable: The Hub does not answer.
        """
        if operation.who is Who.ANYBODY:
            return NOBODY
        if operation.who is Who.MONITOR and shows(
            self.metrics_token, handler.request.headers.get("Authorization", "")
        ):
            return MONITOR
        if operation.who is Who.NODE and self.nodes is not None:
            return await self._agent(self.nodes, handler)
        caller = await self.identity.authenticate(handler)
        if caller is None:
            raise NotAuthenticated(
                "This needs a token of the Hub: get one on the Hub's token page and send it as "
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
            raise Forbidden(f"The agent of {node} says nothing of {named}.")
        return Caller(f"agent of {node}", kind="node")


def shows(token: str, authorization: str) -> bool:
    """Say whether a header ``Authorization`` shows this token; an empty one is never shown.

    >>> shows("secret", "Bearer secret"), shows("secret", "Bearer other"), shows("", "Bearer ")
    (True, False, False)
    """
    scheme, _, shown = authorization.partition(" ")
    known = scheme.lower() in ("bearer", "token") and bool(token)
    return known and hmac.compare_digest(shown.strip().encode(), token.encode())


def allowed(who: Who, caller: Caller) -> bool:
    """Say whether a caller may use a route at all.

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
    """Let only those through who may use an operation. Errors: ``Forbidden``."""
    if not allowed(who, caller):
        raise Forbidden(f"Only {WORDS[who]} may do this; {caller.name} is none.")
