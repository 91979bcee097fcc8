"""Lets a Hub of JupyterHub 5 wait for a service that it starts for as long as the service lives.

It gives up after ten tries of a second and ends itself; JupyterHub 6 has a setting for that. What
watches the Hub sees whether anything happens meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

TRY_S = 1.0


async def until_answered(answers: Callable[[], Awaitable[object]], service: Any) -> bool:
    """Wait until a service answers; return False when its process has ended before.

    Args:
        answers: Waits for an answer for a while. Errors: TimeoutError, there was none.
        service: The Hub's, with the ``spawner`` of its process.
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
    """Let the Hub of this process be patient."""
    from jupyterhub.app import JupyterHub
    from jupyterhub.objects import Server

    once = cast("Callable[..., Awaitable[bool]]", JupyterHub.start_service)

    async def start_service(hub: Any, name: str, service: Any, ssl_context: Any = None) -> bool:
        if await once(hub, name, service, ssl_context):
            return True
        if not service.managed or not service.url:
            return False
        hub.log.warning("Service %s is waited for as long as it lives", name)
        server = Server.from_orm(service.orm.server)
        return await until_answered(
            lambda: server.wait_up(http=True, timeout=TRY_S, ssl_context=ssl_context), service
        )

    JupyterHub.start_service = start_service
