"""Differences between a job on a cluster and its user's container: the home and late installations.

A job runs in the image of its notebook as it was built. Packages installed later in the notebook's
container are not in the image. A home that many pods cannot mount is not in the job either
(decision 0021).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

IMAGE = "BENCHPOOL_IMAGE"
HOME = "BENCHPOOL_HOME"
SHARED = "shared"
"""Value of ``BENCHPOOL_HOME``, set by the spawner, if jobs mount the home."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """Files and modules that exist here and not in the job.

    Attributes:
        home: Home folder, empty outside of a cluster. ``shared``: whether jobs mount it.
        since: Start of the container in Unix time, or None. Newer files outside the home are not
            in the image.
        carried: Modules of packages that are sent along.
        refused: Modules of packages that cannot be sent.
    """

    home: str = ""
    shared: bool = False
    since: float | None = None
    carried: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Return whether a path is in a home that jobs do not see.

        >>> Unseen("/home/joe").hides("/home/joe/env/bin/python")
        True
        >>> Unseen("/home/joe", shared=True).hides("/home/joe/env/bin/python")
        False
        """
        return bool(self.home) and not self.shared and Path(path).is_relative_to(self.home)


NOTHING = Unseen()
"""No differences: a job sees the same files, as on one machine."""


def unseen_here(environ: Mapping[str, str]) -> Unseen:
    """Return the files and modules here that jobs sent from this container do not see.

    >>> unseen_here({"HOME": "/home/joe"})
    Unseen(home='', shared=False, since=None, carried=(), refused=())
    >>> unseen_here({"HOME": "/home/joe", "BENCHPOOL_IMAGE": "lab/notebook:1"}).home
    '/home/joe'
    """
    if not environ.get(IMAGE):
        return NOTHING
    return Unseen(environ.get("HOME", ""), environ.get(HOME) == SHARED, _container_began())


def unchecked(image: str) -> str:
    """Return the message about unchecked imports in another image than this container's.

    >>> unchecked("lab/other:2")
    'imports are not checked: the packages of lab/other:2 are not known here'
    """
    return f"imports are not checked: the packages of {image} are not known here"


def _container_began() -> float | None:
    """Return the start time of this container's first process, in Unix time. None if unknown."""
    try:
        ticks = int(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])
        boot = next(
            int(line.split()[1])
            for line in Path("/proc/stat").read_text().splitlines()
            if line.startswith("btime ")
        )
        return boot + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
