"""A loop that goes on after a pause where it was, exactly: its objects and all random states.

A program may have several loops, one after the other or one in another. Each has a key: its place
among the loops of its level, after the key of the loop around it (``1.0``: the first loop inside
the present turn of the second). As a program takes the same way each time, the same loop has the
same key in each attempt.

A save holds how many turns of each loop are done, what it carries, and the random states at its
beginning, at the beginning of its present turn, and now. To go on, the program runs from its
beginning: a loop that had ended is set to what it carried then and has no turns left, the turns of
an open one that are done are passed over, and the loop where the program was is set to the very
state of the save.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from benchpool.checkpoint import (
    carried,
    commits,
    notices,
    pacing,
    random_states,
    reports,
    saved_loops,
    votes,
)
from benchpool.checkpoint.loop_saves import Saves
from benchpool.checkpoint.saved_loops import SavedLoops

if TYPE_CHECKING:
    from benchpool.checkpoint.loops import Loop

T = TypeVar("T")


class LoopOrder:
    """The loops of this process: which are open, which have ended, and where it had been."""

    def __init__(self) -> None:
        self._open: list[Loop[Any]] = []
        self._ended: dict[str, Mapping[str, Any]] = {}
        self._left: dict[str, dict[str, Any]] = {}
        self._top = 0
        self.saves: Saves | None = None
        self._earlier: Earlier | None = None

    def enter(self, loop: Loop[T]) -> Iterator[T]:
        """Give a loop its key, and return its items from where it was in an earlier attempt."""
        if self._open:
            around = self._open[-1]
            loop.key, around.inner = f"{around.key}.{around.inner}", around.inner + 1
        else:
            loop.key, self._top = str(self._top), self._top + 1
        folder = notices.directory()
        if folder is None:
            return iter(loop.items)
        if self.saves is None:
            self.saves = self._begin(folder)
        if self._earlier and loop.key in self._earlier.saved.places:
            return self._go_on(loop, self._earlier)
        self._open.append(loop)
        notices.raise_flag_on_sigterm()
        loop.at_start = loop.randoms()
        if self._left:
            self._save(self.saves, loop, wait=True)
        return iter(loop.items)

    def begin_turn(self, loop: Loop[Any]) -> None:
        """A turn begins; one in which the program was, with the random states of then."""
        if loop not in self._open:
            return
        if loop.to_restore is None:
            loop.at_turn = loop.randoms()
        else:
            loop.at_turn, loop.to_restore = loop.to_restore, None
            loop.set_randoms(loop.at_turn)

    def turned(self, loop: Loop[Any]) -> None:
        """A turn of a loop is done: save where that is due, and stop when asked to.

        Raises:
            SystemExit: The job was asked to pause.
        """
        if self.saves is None or loop not in self._open:
            return
        del self._open[self._open.index(loop) + 1 :]
        loop.inner = 0
        self._forget_inside(loop.key)
        stop, save = votes.stop_or_save(self.saves.due(loop.every_s))
        if stop or save:
            self._save(self.saves, loop, wait=stop)
        reports.follow(_share(self._open), _far(self._open))
        if stop:
            self._open.clear()
            pacing.leave_paused()

    def end(self, loop: Loop[Any]) -> None:
        """A loop has no items left; one that carries something is saved as ended."""
        if self.saves is not None and loop in self._open:
            self._close(loop)
            if loop.carries:
                self._save(self.saves, loop, wait=True)
            self._perhaps_over()

    def leave(self, loop: Loop[Any]) -> None:
        """A loop is left by ``break``. What it carries is saved when the next loop begins."""
        if loop in self._open:
            self._close(loop)
            self._perhaps_over()

    def _close(self, loop: Loop[Any]) -> None:
        del self._open[self._open.index(loop) :]
        self._forget_inside(loop.key)
        self._ended[loop.key] = loop.place(ended=True)
        if loop.carries:
            self._left[loop.key] = loop.carries

    def _perhaps_over(self) -> None:
        """Outside all loops nobody asks whether to stop: from there on the signal ends it."""
        if not self._open and self.saves is not None:
            self.saves.finish()
            notices.end_on_sigterm()

    def _forget_inside(self, key: str) -> None:
        for known in (self._ended, self._left):
            for inside in [each for each in known if each.startswith(f"{key}.")]:
                del known[inside]

    # ---------------------------------------------------------------- saving

    def _save(self, saves: Saves, cursor: Loop[Any], *, wait: bool) -> None:
        carries = {**{each.key: each.carries for each in self._open}, **self._left}
        writes = votes.rank() == 0
        saved = SavedLoops(
            cursor.key,
            {**self._ended, **{each.key: each.place(ended=False) for each in self._open}},
            random_states.capture(),
            {key: carried.states(each) for key, each in carries.items() if each and writes},
        )
        self._left.clear()
        saves.save(saved, (self._open or [cursor])[0].done, wait=wait)

    # ---------------------------------------------------------------- going on

    def _begin(self, folder: Path) -> Saves:
        found = commits.latest()
        saved = None if found is None else saved_loops.read(found, votes.rank())
        if found is not None and saved is None:
            _say(f"checkpoint {found.name} was not saved by a loop: begins at the first turn")
        if found is not None and saved is not None:
            self._earlier = Earlier(found, saved)
            if not saved.now:
                _say("this rank was not there at the last save: its random states are new ones")
        return Saves(folder, found)

    def _go_on(self, loop: Loop[T], earlier: Earlier) -> Iterator[T]:
        place = earlier.saved.places[loop.key]
        earlier.apply(loop)
        source: Iterator[T] = iter(())
        if place["ended"]:
            loop.done = place["done"]
            self._ended[loop.key] = place
        else:
            self._open.append(loop)
            notices.raise_flag_on_sigterm()
            loop.at_start = place["at_start"]
            if earlier.saved.now:
                loop.set_randoms(loop.at_start)
            source = loop.from_turn(place["done"])
            loop.to_restore = place["at_turn"] if earlier.saved.now else None
        if loop.key == earlier.saved.cursor:
            self._arrive(loop, earlier)
        return source

    def _arrive(self, loop: Loop[Any], earlier: Earlier) -> None:
        """The program is where the save was made: everything is as it was then."""
        for each in self._open:
            earlier.apply(each)
        loop.to_restore = None
        if earlier.saved.now:
            random_states.restore(earlier.saved.now)
        _say(f"goes on after {_far(self._open or [loop])}")
        self._earlier = None


class Earlier(NamedTuple):
    """What the earlier attempt saved last, and where."""

    folder: Path
    saved: SavedLoops

    def apply(self, loop: Loop[Any]) -> None:
        """Set what a loop carries to the save."""
        carried.apply_all(loop.carries, saved_loops.states(self.folder, loop.key))
        if self.saved.now:
            carried.set_generators(loop.carries, self.saved.places[loop.key]["generators"])


def _length(loop: Loop[Any]) -> int | None:
    try:
        return len(loop)
    except TypeError:  # items that nobody has counted
        return None


def _share(loops: list[Loop[Any]]) -> float | None:
    """Return what part of the outermost loop is done, as far as its items can be counted."""
    done, of_one = 0.0, 1.0
    for each in loops:
        length = _length(each)
        if length is None:
            break
        done += each.done / max(length, 1) * of_one
        of_one /= max(length, 1)
    return None if loops and _length(loops[0]) is None else done


def _far(loops: list[Loop[Any]]) -> str:
    """Say how many turns of each loop are done, from the outermost to the innermost."""
    lengths = [(each.done, _length(each)) for each in loops]
    return ", ".join(f"{done} of {n}" if n is not None else f"{done} turns" for done, n in lengths)


def _say(text: str) -> None:
    print(f"benchpool: {text}", file=sys.stderr, flush=True)


program = LoopOrder()
