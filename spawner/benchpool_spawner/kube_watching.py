"""Watching pods and events for as long as the Hub lives, however long the API server is away.

Where all servers share a namespace, a reflector of KubeSpawner 7 tries for about 50 s and then ends
without a word to anybody; its last view is kept and handed out for ever
(https://github.com/jupyterhub/kubespawner/pull/938). A server that starts or stops after that stays
*pending*, whatever its pod does. With namespaces of users it ends the whole Hub instead. And a Hub
that starts while the API server is away would take every server for stopped. Nothing of this is
needed: all is listed anew when the API server answers again.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from kubernetes_asyncio.client.exceptions import ApiException
from kubespawner.reflector import ResourceReflector

PAUSE_S = 2.0
"""Between two attempts to list for the first time."""


class _Untiring(ResourceReflector):  # type: ignore[misc]
    """A reflector that begins anew where KubeSpawner's gives up."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "on_failure": None})

    async def _list_and_update(self, resource_version: str | None = None) -> Any:
        while True:
            try:
                return await super()._list_and_update(resource_version)
            except Exception as failed:
                # Without a version it is the first list: who asks after a server waits for it.
                if resource_version is not None or _is_refused(failed):
                    raise
                self.log.warning("%s are not listed, the API server: %s", self.kind, failed)
            await asyncio.sleep(PAUSE_S)

    async def _watch_and_update(self) -> None:
        while not self._stopping:
            await super()._watch_and_update()
            if not self._stopping:
                self.log.warning("Watching %s goes on: the API server may come back", self.kind)


def _is_refused(failed: Exception) -> bool:
    """Whether the API server answered, and will answer the same again."""
    status = failed.status if isinstance(failed, ApiException) else None
    return status is not None and 400 <= status < 500 and status != 429


@cache
def untiring(reflector: type[ResourceReflector]) -> type[ResourceReflector]:
    """Return a reflector's class that never gives up; its settings keep their names.

    >>> from kubespawner.spawner import PodReflector
    >>> made = untiring(PodReflector)
    >>> made.__name__, issubclass(made, PodReflector), made is untiring(PodReflector)
    ('PodReflector', True, True)
    """
    return type(reflector.__name__, (_Untiring, reflector), {"__module__": __name__})
