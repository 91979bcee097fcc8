"""What administrators decide through the API: ``benchpool.yaml``, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def check(request: Request) -> Answer:
    """Answer what a configuration would change."""
    return Answer(request.pool.configuration.check(request.caller, request.body))


async def apply(request: Request) -> Answer:
    """Put a configuration in force: all or nothing."""
    return Answer(await request.pool.configuration.apply(request.caller, request.body))


async def backup(request: Request) -> Answer:
    """Answer where a new copy lies."""
    return Answer(await request.pool.backups.make_for(request.caller))


async def adopt(request: Request) -> Answer:
    """Answer what is not known, after what was decided about it."""
    return Answer(await request.pool.adoption.act(request.caller, request.body))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.check_config: check,
    Operations.apply_config: apply,
    Operations.backup: backup,
    Operations.adopt: adopt,
}
