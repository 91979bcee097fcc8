"""Agent routes for the shells that agents opened in their workers."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from benchpool_scheduler.api.agent_endpoint import AgentEndpoint, AgentRoute
from benchpool_scheduler.contract.operation import KIB
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime import WorkerId

MOST_OFFSET = 2**50
SHELL = r"shells/(?P<shell>[0-9a-f]{32})"


class EndBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Outcome of a shell: its exit code (None after a signal), or why it was not opened."""

    exit_code: Annotated[int, Meta(ge=0, le=255)] | None = None
    why: Annotated[str, Meta(max_length=500)] = ""


async def _typed(at: AgentEndpoint, worker: WorkerId) -> None:
    shell = at.agents.agent_api.shell_of(worker, at.path_kwargs["shell"])
    offset = int(at.query("offset", 0, MOST_OFFSET))
    full = bool(at.query("full", 0, 1))
    wait_s = at.query("wait_s", 0, 120)
    known = "rows" in at.request.query_arguments
    rows, columns = (int(at.query(it, 0, 10_000)) if known else 0 for it in ("rows", "columns"))
    found = await at.unless_gone(shell.typed(offset, (rows, columns), wait_s, full=full))
    if found is not None:
        at.answer(found)


async def _printed(at: AgentEndpoint, worker: WorkerId) -> None:
    shell = at.agents.agent_api.shell_of(worker, at.path_kwargs["shell"])
    offset = int(at.query("offset", 0, MOST_OFFSET))
    after = await at.unless_gone(shell.printed(offset, at.body))
    if after is not None:
        at.answer({"next": after})


async def _ended(at: AgentEndpoint, worker: WorkerId) -> None:
    try:
        body = msgspec.json.decode(at.body, type=EndBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise InvalidInput(f"The end cannot be decoded: {bad}.") from bad
    shell = at.agents.agent_api.shell_of(worker, at.path_kwargs["shell"])
    shell.end(body.exit_code, body.why)
    at.answer({})


ROUTES = (
    AgentRoute(f"{SHELL}/typed", {"GET": _typed}),
    AgentRoute(f"{SHELL}/printed", {"POST": _printed}, 64 * KIB),
    AgentRoute(f"{SHELL}/ended", {"POST": _ended}, 4 * KIB),
)
"""All agent routes for shells."""
