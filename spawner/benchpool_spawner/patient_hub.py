"""Patch for JupyterHub 5: wait for a managed service while its process lives.

Without it, the Hub gives up after ten tries of a second and exits. JupyterHub 6 has a setting for
that. The supervisor of the Hub checks the progress meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

TRY_S = 1.0


async def until_answered(answers: Callable[[], Awaitable[object]], service: Any) -> bool:
    """Wait until a service answers. Return False if its process ends first.

    Args:
        answers: Waits some time for an answer. Errors: TimeoutError without one.
        service: Service object of the Hub, with the ``spawner`` of its process.
    """
    while await service.spawner.poll() is None:
        try:
            await answers()
        except TimeoutError:
            await asyncio.sleep(0)
        else:
            return True
    return False


def wait_for_services() -> None:
    """Patch the Hub of this process to wait for its services."""
    from jupyterhub.app import JupyterHub
    from jupyterhub.objects import Server

    once = cast("Callable[..., Awaitable[bool]]", JupyterHub.start_service)

    async def start_service(hub: Any, name: str, service: Any, ssl_context: Any = None) -> bool:
        if await once(hub, name, service, ssl_context):
            return True
        if not service.managed or not service.url:
            return False
        hub.log.warning("Waiting for service %s while its process runs", name)
        server = Server.from_orm(service.orm.server)
        return await until_answered(
            lambda: server.wait_up(http=True, timeout=TRY_S, ssl_context=ssl_context), service
        )

    JupyterHub.start_service = start_service
