"""Example notebook: created in a new home, and opened by the card in the Launcher.

A home is new while it contains no visible files. A user's changes to the example are never
overwritten.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from benchpool_scheduler.errors import BenchpoolError, Unavailable

NAME = "training-example.ipynb"
_OF_THE_DISK = frozenset({"lost+found"})
"""Names that a file system itself creates in an empty folder."""


def put(root: Path) -> str:
    """Write the example into the served folder unless it exists; return its path in that folder.

    Raises:
        BenchpoolError: The folder cannot be written to.
    """
    try:
        with (root / NAME).open("xb") as file:
            file.write(resources.files("benchpool.server").joinpath("example.ipynb").read_bytes())
    except FileExistsError:
        pass
    except OSError as failed:
        raise Unavailable(
            f"The example cannot be written into your home folder: {failed.strerror}.",
            code="home-not-writable",
        ) from failed
    return NAME


def welcome(root: Path) -> bool:
    """Write the example into a new home; return whether it was new and could be written to."""
    try:
        if any(_is_seen(each.name) for each in root.iterdir()):
            return False
        put(root)
    except (OSError, BenchpoolError):
        return False  # later code reports a fault of the home
    return True


def _is_seen(name: str) -> bool:
    return not name.startswith(".") and name not in _OF_THE_DISK
