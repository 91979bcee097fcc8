"""Setup that lets cells of a Jupyter server wait while its bench is parked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection

from benchpool.server.parked.held_cells import SETTING, HoldingConnection
from benchpool.server.parked.parked_watch import ParkedWatch, wanted
from benchpool.server.pool_access import PoolAccess

CONNECTION = "kernel_websocket_connection_class"


def begin(server_app: Any, pool: PoolAccess, environ: Mapping[str, str]) -> None:
    """Hold cells from now on. A server with a custom connection class is left unchanged."""
    settings = server_app.web_app.settings
    if not wanted(environ) or settings.get(CONNECTION) is not ZMQChannelsWebsocketConnection:
        return
    user, server = environ["JUPYTERHUB_USER"], environ.get("JUPYTERHUB_SERVER_NAME", "")
    settings[SETTING] = watch = ParkedWatch(pool, server_app.kernel_manager, user, server)
    settings[CONNECTION] = HoldingConnection
    watch.listen_to_acts()
    server_app.io_loop.add_callback(watch.run)
