"""One save of a program's loops, and its files in a checkpoint.

``loops.RANK`` holds the position of each loop and the random states of this rank. ``loop-KEY``
holds the objects that a loop carries, written by rank 0 for all ranks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

from benchpool.checkpoint import trees


class SavedLoops(NamedTuple):
    """Position of a program's loops.

    Attributes:
        cursor: Key of the loop that has just ended a turn, or has itself ended.
        places: The loops, open and ended, by key, as plain values.
        now: Random states at that moment.
        states: The carried objects by key and name.
        before: The previous checkpoint, with the states of loops that had ended earlier, or None.
    """

    cursor: str
    places: Mapping[str, Mapping[str, Any]]
    now: Mapping[str, Any]
    states: Mapping[str, Mapping[str, Any]] = {}
    before: Optional[Path] = None  # noqa: UP045 (Python 3.9)


def write(folder: Path, rank: int, saved: SavedLoops) -> None:
    """Write one rank's part of a save into a folder."""
    about = {"version": 1, "cursor": saved.cursor, "loops": saved.places, "now": saved.now}
    trees.write(folder, f"loops.{rank}", about)
    if rank == 0:
        for key in saved.places:
            if key in saved.states:
                trees.write(folder, f"loop-{key}", saved.states[key])
            elif saved.before is not None:
                _take_over(saved.before, f"loop-{key}", folder)


def read(folder: Path, rank: int) -> SavedLoops | None:
    """Return the loops of a checkpoint without carried objects; None if no loop saved it.

    A rank that did not exist then gets the places of rank 0, and no random states.
    """
    for each in dict.fromkeys((rank, 0)):
        try:
            about = trees.read(folder, f"loops.{each}")
        except FileNotFoundError:
            continue
        now = about["now"] if each == rank else {}
        return SavedLoops(about["cursor"], about["loops"], now, before=folder)
    return None


def states(folder: Path, key: str) -> dict[str, Any]:
    """Return the states that a loop carried, by name."""
    try:
        return dict(trees.read(folder, f"loop-{key}"))
    except FileNotFoundError:
        return {}


def _take_over(before: Path, name: str, folder: Path) -> None:
    for suffix in trees.SUFFIXES:
        old = before / f"{name}{suffix}"
        if old.exists():
            try:
                os.link(old, folder / old.name)
            except OSError:  # a file system without hard links
                (folder / old.name).write_bytes(old.read_bytes())
