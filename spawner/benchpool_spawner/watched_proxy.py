"""Proxy of a cluster, which is a separate pod and loses its routes at each restart.

The Hub compares routes with its servers every ``last_activity_interval``, 300 s by default. After
an eviction or an upgrade of the proxy, the pool and every notebook would be unreachable until then.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from jupyterhub.proxy import ConfigurableHTTPProxy
from jupyterhub.utils import url_path_join
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.ioloop import PeriodicCallback
from traitlets import Float

ANSWER_S = 10.0


class WatchedProxy(ConfigurableHTTPProxy):  # type: ignore[misc]
    """Proxy client that checks one route every ``look_s``, and restores all if it is missing."""

    look_s = Float(
        2.0, config=True, help="Interval between checks of the proxy's routes, in seconds."
    )
    _looking: PeriodicCallback | None = None
    _lost = False

    async def check_routes(self, *arguments: Any, **named: Any) -> None:
        """See ``Proxy``. The Hub calls it at its start, which starts the periodic checks."""
        await super().check_routes(*arguments, **named)
        if self._looking is None:
            self._looking = PeriodicCallback(self._look, 1000 * self.look_s)
            self._looking.start()

    async def _look(self) -> None:
        spec = next((it.proxy_spec for it in self.app._service_map.values() if it.server), None)
        if spec is None or not (self._lost or await self._has_lost(spec)):
            return
        self._lost = True  # until all routes are restored: the proxy may restart meanwhile
        self.log.warning("The proxy was restarted and has no routes; setting them again")
        await self.check_routes(self.app.users, self.app._service_map)
        self._lost = False

    async def _has_lost(self, spec: str) -> bool:
        """Return whether the proxy answers that it does not have a route."""
        request = HTTPRequest(
            url_path_join(self.api_url, "api/routes", self._routespec_to_chp_path(spec)),
            headers={"Authorization": f"token {self.auth_token}"},
            request_timeout=ANSWER_S,
            connect_timeout=ANSWER_S,
        )
        try:
            answer = await AsyncHTTPClient().fetch(request, raise_error=False)
        except (OSError, HTTPClientError):
            return False  # the proxy is down
        return int(answer.code) == HTTPStatus.NOT_FOUND
