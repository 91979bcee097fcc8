"""What a verb works with: the reader's environment, the screen, the client when it needs one."""

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
        environ: The reader's environment; only the command line and the application read it.
        folder: The current folder.
        url, token: What the reader said with ``--url`` and ``--token``.
    """

    environ: Mapping[str, str]
    folder: Path
    screen: Screen = field(default_factory=Screen)
    url: str | None = None
    token: str | None = None

    @cached_property
    def credentials(self) -> Credentials:
        """Where the service is. Raises Unavailable or NotAuthenticated."""
        return self.found()

    def found(self) -> Credentials:
        """Return where the service is now. Raises as ``credentials``."""
        return discover(self.environ, url=self.url, token=self.token)

    @cached_property
    def client(self) -> Client:
        """A client of the service."""
        self.screen.origin = self.credentials.page or self.credentials.url
        return Client(self.credentials, tell=self.screen.aside)

    def close(self) -> None:
        """Close what was opened."""
        if "client" in self.__dict__:
            self.client.close()
