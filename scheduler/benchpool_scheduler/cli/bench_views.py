"""What is printed of benches."""

from __future__ import annotations

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.contract import Lease
from benchpool_scheduler.phrases import count, server_called


def asked_back(screen: Screen, lease: Lease) -> None:
    """Print whose bench was just asked for, and that it goes on."""
    user, server = words.clean(lease.user), server_called(words.clean(lease.server))
    screen.line(
        f"Asked {user} for {count(len(lease.gpus), 'GPU')} of {server}: {user} reads "
        "it on the pool's page and in JupyterLab. Nothing was stopped."
    )
