"""Context of a verb: the user's environment, the screen, and the client on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.client import Client, Credentials, discover


@dataclass
class Session:
    """One call of the command line.

    Args:
        environ: The user's environment. Only the command line and the application read it.
        folder: Current folder.
        url, token: Values of ``--url`` and ``--token``.
    """

    environ: Mapping[str, str]
    folder: Path
    screen: Screen = field(default_factory=Screen)
    url: str | None = None
    token: str | None = None

    @cached_property
    def credentials(self) -> Credentials:
        """Address and token of the service. Errors: Unavailable, NotAuthenticated."""
        return self.found()

    def found(self) -> Credentials:
        """Return the current address and token of the service. Errors: as ``credentials``."""
        return discover(self.environ, url=self.url, token=self.token)

    @cached_property
    def client(self) -> Client:
        """Client of the service."""
        self.screen.origin = self.credentials.page or self.credentials.url
        return Client(self.credentials, on_wait=self.screen.aside)

    def close(self) -> None:
        """Close the client, if it was opened."""
        if "client" in self.__dict__:
            self.client.close()
