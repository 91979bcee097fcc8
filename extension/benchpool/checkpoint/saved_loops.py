"""One save of a program's loops, and its files in a checkpoint.

``loops.RANK`` is how far each loop is, and what this rank draws next; ``loop-KEY`` is what a loop
carries, written by rank 0 for all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Optional

from benchpool.checkpoint import trees


class SavedLoops(NamedTuple):
    """How far the loops of a program are.

    ``cursor`` is the key of the loop that had just ended a turn, or itself; ``now`` are the random
    states at that moment. ``places`` are the loops, open and ended, by key, as plain values.
    ``states`` is what they carry, by key and name. In ``before`` are the states of loops that had
    ended earlier: the checkpoint before, None for none.
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
    """Return the loops of a checkpoint without what they carry; None where no loop saved it.

    A rank that was not there then gets the places of rank 0, and no random states.
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
    """Return what a loop carried, by name."""
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
