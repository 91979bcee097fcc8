"""The Jupyter server extension: what the page may ask of the pool, with the server's identity.

The page never gets the server's token: requests are forwarded by an allow-list, and everything
else here is judged against the folder that the notebook server serves.
"""

from __future__ import annotations

from typing import Any

PREFIX = "benchpool"


def load(server_app: Any) -> None:
    """Add our routes to a Jupyter server."""
    from benchpool.server import handlers
    from benchpool.server.pool_access import PoolAccess

    settings = server_app.web_app.settings
    settings["benchpool"] = PoolAccess()
    server_app.web_app.add_handlers(".*$", handlers.routes(settings["base_url"]))
    server_app.log.info("benchpool: send to training from this server")
