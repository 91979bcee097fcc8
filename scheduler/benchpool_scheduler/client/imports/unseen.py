"""What a job on a cluster does not find that is there for its user: a home, and what came late.

A job runs in its notebook's image as it was built. What was installed since into the notebook's
own container is in no image; a home that cannot be mounted by many pods is not in the job either
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
"""What the spawner writes: the image of this container, and whether jobs mount its home."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """What is here, and not in the job.

    Attributes:
        home: The home folder, empty outside of a cluster. ``shared``: jobs mount it.
        since: Files elsewhere that are newer are not in the image; None where that is not known.
        carried: Modules of packages that go along with the job all the same. ``refused``: of those
            that were to go along, and cannot.
    """

    home: str = ""
    shared: bool = False
    since: float | None = None
    carried: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Tell whether a path lies in a home that jobs do not see.

        >>> Unseen("/home/joe").hides("/home/joe/env/bin/python")
        True
        >>> Unseen("/home/joe", shared=True).hides("/home/joe/env/bin/python")
        False
        """
        return bool(self.home) and not self.shared and Path(path).is_relative_to(self.home)


NOTHING = Unseen()
"""A job sees all that is here, as on one machine."""


def unseen_here(environ: Mapping[str, str]) -> Unseen:
    """Return what jobs that are sent from here in this image do not see.

    >>> unseen_here({"HOME": "/home/joe"})
    Unseen(home='', shared=False, since=None, carried=(), refused=())
    >>> unseen_here({"HOME": "/home/joe", "BENCHPOOL_IMAGE": "lab/notebook:1"}).home
    '/home/joe'
    """
    if not environ.get(IMAGE):
        return NOTHING
    return Unseen(environ.get("HOME", ""), environ.get(HOME) == SHARED, _container_began())


def unchecked(image: str) -> str:
    """Return what is said of imports in another image than that of this container.

    >>> unchecked("lab/other:2")
    'imports are not checked: what is installed in lab/other:2 is not known here'
    """
    return f"imports are not checked: what is installed in {image} is not known here"


def _container_began() -> float | None:
    """Return when the first process of this container began."""
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
