"""Folders with event files of a user's jobs, found from their results and shown as one folder.

TensorBoard reads everything below one folder; a whole home is too much. So it gets a folder of
links to the job results that have event files.
"""

from __future__ import annotations

import os
from collections import deque
from pathlib import Path

from benchpool_scheduler.client.results import RESULTS

EVENTS = "tensorboard"
DEEPEST = 5
MOST = 20_000


def found(root: Path, deepest: int = DEEPEST, most: int = MOST) -> dict[str, Path]:
    """Return the folders with event files below a folder, by the name of the job's results.

    Hidden folders and links are not entered.

    Args:
        deepest: Maximum depth at which result folders are searched.
        most: Maximum number of folders that are read, those near the root first.
    """
    folders: dict[str, Path] = {}
    waiting = deque([(root, 0)])
    while waiting and most > 0:
        most -= 1
        folder, depth = waiting.popleft()
        below = _folders(folder)
        if folder.name == RESULTS:
            # A trial is in the folder of its sweep.
            for one in [*below, *(each for it in below for each in _folders(it))]:
                if (one / EVENTS).is_dir():
                    folders[str(one.relative_to(folder)).replace(os.sep, "-")] = one / EVENTS
        elif depth < deepest:
            waiting.extend((each, depth + 1) for each in below)
    return folders


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [it.name for it in entries if it.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # not readable, or gone meanwhile
    return [folder / name for name in sorted(names) if not name.startswith(".")]


def link(links: Path, folders: dict[str, Path]) -> None:
    """Make a folder contain links to exactly these folders. Raises OSError."""
    there = {it.name for it in links.iterdir()}
    for name in there - set(folders):
        (links / name).unlink()
    for name in set(folders) - there:
        (links / name).symlink_to(folders[name])
