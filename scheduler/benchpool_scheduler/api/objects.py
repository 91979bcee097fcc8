"""API routes for file contents by hash: missing contents, and uploads streamed to disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.decoding import Malformed
from benchpool_scheduler.api.routing import Answer, Handle, Receive, Request, Sink
from benchpool_scheduler.contract import Missing
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def missing(request: Request) -> Answer:
    """Return the hashes that the caller still has to upload."""
    return Answer(Missing(request.pool.uploads.missing(request.caller, request.body.sha256)))


def receive(request: Request, size: int) -> Sink:
    """Open the target of an upload. The announced size allows an early refusal."""
    if "Content-Length" not in request.transport.request.headers:
        raise Malformed(
            "The upload has no length. Set the header Content-Length.",
            field="Content-Length",
        )
    return request.pool.uploads.writer(request.caller, request.path["sha256"], size)


async def put(request: Request) -> Answer:
    """Store an upload that matches its announced length and hash."""
    await request.body.close()
    return Answer(status=204)


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.missing_objects: missing,
    Operations.put_object: put,
}

RECEIVERS: Mapping[Operation[Any], Receive] = {Operations.put_object: receive}
