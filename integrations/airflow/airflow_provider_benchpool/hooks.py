"""Connection to a pool: its address is the host, a token of the Hub the password."""

from __future__ import annotations

from typing import Any, Protocol

from airflow.sdk import BaseHook

from benchpool_scheduler.client import AsyncClient, Client, Credentials, discover
from benchpool_scheduler.errors import BenchpoolError

PATIENCE_S = 120.0
"""Timeout for a restarting pool, in seconds."""


class _Connection(Protocol):
    host: str | None
    password: str | None


class BenchpoolHook(BaseHook):  # type: ignore[misc]
    """Clients of the pool that an Airflow connection defines.

    Args:
        benchpool_conn_id: ID of the connection.
    """

    conn_name_attr = "benchpool_conn_id"
    default_conn_name = "benchpool_default"
    conn_type = "benchpool"
    hook_name = "benchpool"

    def __init__(self, benchpool_conn_id: str = default_conn_name, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.benchpool_conn_id = benchpool_conn_id

    def get_conn(self) -> Client:
        """Return a client. Errors: those of ``benchpool_scheduler.errors``."""
        found = credentials(self.get_connection(self.benchpool_conn_id))
        return Client(found, patience_s=PATIENCE_S, on_wait=self.log.info)

    async def async_client(self) -> AsyncClient:
        """Return an asynchronous client, for triggers."""
        found = credentials(await self.aget_connection(self.benchpool_conn_id))
        return AsyncClient(found, patience_s=PATIENCE_S, on_wait=self.log.info)

    def test_connection(self) -> tuple[bool, str]:
        """Return whether the pool answers, and the user name or the error in a sentence."""
        try:
            with self.get_conn() as pool:
                return True, f"Connected to the pool as {pool.quota().user}."
        except BenchpoolError as failed:
            return False, failed.message


def credentials(connection: _Connection) -> Credentials:
    """Return the address and the token of a connection."""
    return discover({}, url=connection.host, token=connection.password)
