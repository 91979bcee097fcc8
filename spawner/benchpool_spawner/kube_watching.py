"""Watch of pods and events that survives any outage of the API server while the Hub runs.

If all servers share a namespace, a reflector of KubeSpawner 7 retries for about 50 s and then ends
silently, while its last view stays in use
(https://github.com/jupyterhub/kubespawner/pull/938). A server that starts or stops after that stays
*pending*, whatever its pod does. With a namespace per user it ends the whole Hub instead. A Hub
that starts during an outage would take every server for stopped. Instead, this module lists all
objects again when the API server answers again.
"""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Any

from kubernetes_asyncio.client.exceptions import ApiException
from kubespawner.reflector import ResourceReflector

PAUSE_S = 2.0
"""Pause between attempts at the first list, in seconds."""


class _Untiring(ResourceReflector):  # type: ignore[misc]
    """Reflector that restarts where KubeSpawner's gives up."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "on_failure": None})

    async def _list_and_update(self, resource_version: str | None = None) -> Any:
        while True:
            try:
                return await super()._list_and_update(resource_version)
            except Exception as failed:
                # Without a version this is the first list, which the state of every server depends
                # on.
                if resource_version is not None or _is_refused(failed):
                    raise
                self.log.warning("listing %s failed: %s", self.kind, failed)
            await asyncio.sleep(PAUSE_S)

    async def _watch_and_update(self) -> None:
        while not self._stopping:
            await super()._watch_and_update()
            if not self._stopping:
                self.log.warning("Watch of %s continues: the API server may return", self.kind)


def _is_refused(failed: Exception) -> bool:
    """Return whether the API server answered with an error that a retry would repeat."""
    status = failed.status if isinstance(failed, ApiException) else None
    return status is not None and 400 <= status < 500 and status != 429


@cache
def untiring(reflector: type[ResourceReflector]) -> type[ResourceReflector]:
    """Return a subclass of a reflector that never gives up. Its settings keep their names.

    >>> from kubespawner.spawner import PodReflector
    >>> made = untiring(PodReflector)
    >>> made.__name__, issubclass(made, PodReflector), made is untiring(PodReflector)
    ('PodReflector', True, True)
    """
    return type(reflector.__name__, (_Untiring, reflector), {"__module__": __name__})
