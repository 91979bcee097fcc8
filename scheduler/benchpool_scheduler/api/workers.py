"""API for the agents in workers' pods, with a table of routes separate from the users' API.

The routes are below ``workers/JOB/ATTEMPT/WORKER/``. An agent proves its worker with a token that
only the scheduler can make (``runtime.kubernetes.tokens``). It may fetch the files of its job and
report about its own worker, and nothing else.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from tornado.web import url

from benchpool_scheduler.api import worker_shells
from benchpool_scheduler.api.agent_endpoint import AgentEndpoint, AgentRoute, Agents
from benchpool_scheduler.contract.operation import MIB
from benchpool_scheduler.contract.stacks import STACKS_BYTES, WorkerStacks
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_scheduler.runtime import ReportedValue, WorkerId
from benchpool_scheduler.runtime.kubernetes.agent_api import PendingLook
from benchpool_scheduler.runtime.kubernetes.agent_shells import PendingShell
from benchpool_scheduler.worker import tracker_runs

PIECE = MIB
MOST_OFFSET = 2**50

WORKER = r"(?P<job>[a-z0-9]{1,26})/(?P<attempt>[1-9][0-9]{0,8})/(?P<worker>0|[1-9][0-9]{0,5})"


class ProgressBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Progress report of a worker, with the same limits as on a workstation."""

    fraction: Annotated[float, Meta(ge=0, le=1)] | None = None
    text: Annotated[str, Meta(max_length=500)] | None = None
    metrics: Annotated[dict[str, float], Meta(max_length=100)] = {}
    checkpoint_at: float | None = None
    checkpoint_step: Annotated[int, Meta(ge=0)] | None = None
    runs: Annotated[list[tuple[str, str]], Meta(max_length=tracker_runs.MOST)] = []


class ValueBody(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Value reported by a worker, as in ``worker.metric_lines.ReportedValue``."""

    name: Annotated[str, Meta(max_length=100)]
    value: float | None
    at: Annotated[float, Meta(ge=0, lt=1e11)]
    step: Annotated[int, Meta(ge=0, lt=10**15)] | None


class MetricsBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Values reported by a worker, oldest first."""

    values: Annotated[list[ValueBody], Meta(max_length=500)]


# --------------------------------------------------------------------------- answers


async def _notice(at: AgentEndpoint, worker: WorkerId) -> None:
    known = at.get_query_argument("known", "")
    wait_s = at.query("wait_s", 0, 120)
    asked = at.get_query_argument("looked", "")
    looked = at.query("looked", 0, 10**9) if asked else None
    looked = None if looked is None else int(looked)
    shells = at.get_query_argument("shell") if "shell" in at.request.query_arguments else None
    found = await at.unless_gone(at.agents.agent_api.notice(worker, known, wait_s, looked, shells))
    if at.gone.is_set():
        return
    if found is None:
        at.set_status(204)
        at.finish()
        return
    if isinstance(found, PendingLook):
        at.answer({"kind": "look", "number": found.number})
        return
    if isinstance(found, PendingShell):
        at.answer({"kind": "shell", **dataclasses.asdict(found)})
        return
    at.answer({"kind": found.kind, "grace_s": found.grace_s, "for": found.for_, "text": found.text})


async def _log(at: AgentEndpoint, worker: WorkerId) -> None:
    offset = int(at.query("offset", 0, MOST_OFFSET))
    data = at.body
    after = await asyncio.to_thread(at.agents.agent_api.append, worker, offset, data)
    at.agents.agent_api.grew(worker)
    at.answer({"next": after})


async def _progress(at: AgentEndpoint, worker: WorkerId) -> None:
    try:
        body = msgspec.json.decode(at.body, type=ProgressBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise InvalidInput(f"The progress cannot be decoded: {bad}.") from bad
    saved = (body.checkpoint_at, body.checkpoint_step)
    facts = (body.fraction, body.text, body.metrics, *saved)
    at.agents.agent_api.progress(worker, *facts, tracker_runs.checked(body.runs))
    at.answer({})


async def _metrics(at: AgentEndpoint, worker: WorkerId) -> None:
    try:
        body = msgspec.json.decode(at.body, type=MetricsBody)
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise InvalidInput(f"The metrics cannot be decoded: {bad}.") from bad
    values = [ReportedValue(it.name, it.value, it.at, it.step) for it in body.values]
    at.agents.agent_api.metrics(worker, values)
    at.answer({})


async def _stacks(at: AgentEndpoint, worker: WorkerId) -> None:
    try:
        found = msgspec.json.decode(at.body, type=WorkerStacks)
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise InvalidInput(f"The stacks cannot be decoded: {bad}.") from bad
    at.agents.agent_api.looked(worker, found)
    at.answer({})


async def _object(at: AgentEndpoint, worker: WorkerId) -> None:
    pieces = at.agents.contents.read(worker.job, at.path_kwargs["sha256"])
    at.set_header("Content-Type", "application/octet-stream")
    async for piece in pieces:
        at.write(piece)
        await at.flush()
    at.finish()


async def _carried(at: AgentEndpoint, worker: WorkerId) -> None:
    index = int(at.path_kwargs["index"])
    path = at.agents.agent_api.carried(worker.job, "checkpoint", index)
    try:
        file = await asyncio.to_thread(open, path, "rb")
    except FileNotFoundError:
        raise NotFound("No checkpoint is saved yet.") from None
    with file:
        at.set_header("Content-Type", "application/octet-stream")
        while piece := await asyncio.to_thread(file.read, PIECE):
            at.write(piece)
            await at.flush()
    at.finish()


async def _keep(at: AgentEndpoint, worker: WorkerId) -> None:
    at.agents.agent_api.admit(worker)  # it may have ended while its body arrived
    target = at.agents.agent_api.carried(worker.job, at.route.carries, worker.worker)
    await asyncio.to_thread(at.keep_file, target)
    at.answer({})


ROUTES = (
    AgentRoute("notice", {"GET": _notice}),
    AgentRoute("log", {"POST": _log}, MIB),
    AgentRoute("progress", {"POST": _progress}, 64 * 1024),
    AgentRoute("metrics", {"POST": _metrics}, 512 * 1024),
    AgentRoute("stacks", {"POST": _stacks}, STACKS_BYTES),
    *worker_shells.ROUTES,
    AgentRoute("objects/(?P<sha256>[0-9a-f]{64})", {"GET": _object}),
    AgentRoute("checkpoint/(?P<index>0|[1-9][0-9]{0,5})", {"GET": _carried}),
    AgentRoute("checkpoint", {"PUT": _keep}, carries="checkpoint"),
    AgentRoute("results", {"PUT": _keep}, carries="results"),
)
"""All agent routes."""


def rules(agents: Agents, prefix: str) -> list[Any]:
    """Return Tornado's rules. ``prefix`` ends in a slash."""
    return [
        url(
            f"{prefix}workers/{WORKER}/{route.path}",
            AgentEndpoint,
            {"route": route, "agents": agents},
        )
        for route in ROUTES
    ]
