"""API routes for administrators: ``benchpool.yaml``, backups and safe mode issues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.api.routing import Answer, Handle, Request
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations


async def check(request: Request) -> Answer:
    """Return the changes that a configuration would make."""
    configuration = request.pool.configuration
    return Answer(configuration.check(request.caller, request.body, request.query.file))


async def apply(request: Request) -> Answer:
    """Put a configuration in force, all or nothing."""
    asked = request.query
    return Answer(
        await request.pool.configuration.apply(
            request.caller, request.body, asked.file, asked.reason or ""
        )
    )


async def set_values(request: Request) -> Answer:
    """Set single values of the configuration."""
    return Answer(await request.pool.configuration.set(request.caller, request.body))


async def revert(request: Request) -> Answer:
    """Put a former version in force again."""
    return Answer(await request.pool.configuration.revert(request.caller, request.body))


async def log(request: Request) -> Answer:
    """Return the previous versions of the configuration."""
    versions = request.pool.configuration.versions
    return Answer(await versions.log(request.caller, request.query.limit))


async def text(request: Request) -> Answer:
    """Return the text of a version of the configuration."""
    versions = request.pool.configuration.versions
    return Answer(await versions.text(request.caller, request.query.version))


async def backup(request: Request) -> Answer:
    """Make a backup and return its location."""
    return Answer(await request.pool.backups.make_for(request.caller))


async def doubts(request: Request) -> Answer:
    """Return the open safe mode issues."""
    return Answer(request.pool.adoption.doubts(request.caller))


async def adopt(request: Request) -> Answer:
    """Apply the administrator's decisions and return the remaining safe mode issues."""
    return Answer(await request.pool.adoption.act(request.caller, request.body))


HANDLERS: Mapping[Operation[Any], Handle] = {
    Operations.check_config: check,
    Operations.apply_config: apply,
    Operations.set_config: set_values,
    Operations.revert_config: revert,
    Operations.config_log: log,
    Operations.config: text,
    Operations.backup: backup,
    Operations.doubts: doubts,
    Operations.adopt: adopt,
}
