"""Order of a program's loops, which continue after a pause exactly where they were.

A program may have several loops, in sequence or nested. Each has a key: its number among the loops
of its level, after the key of the outer loop (``1.0``: the first loop inside the present turn of
the second). A program takes the same path each time, so the same loop has the same key in each
attempt.

A save holds, for each loop, the number of turns done, the carried objects, and the random states at
its beginning and at the beginning of its present turn. It also holds the present random states. To
continue, the program runs from its beginning:

- a loop that had ended is restored to its carried state and has no turns left;
- an open loop skips the turns that are done;
- the loop where the program was is restored to the exact state of the save.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
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
    """Loops of this process: the open ones, the ended ones, and an earlier attempt's position.

    Args:
        clock: Clock of the interval between saves, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: list[Loop[Any]] = []
        self._ended: dict[str, Mapping[str, Any]] = {}
        self._left: dict[str, dict[str, Any]] = {}
        self._top = 0
        self.saves: Saves | None = None
        self._earlier: Earlier | None = None

    def enter(self, loop: Loop[T]) -> Iterator[T]:
        """Assign a loop its key, and return its items from its position in an earlier attempt."""
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
            return self._resume(loop, self._earlier)
        self._open.append(loop)
        notices.raise_flag_on_sigterm()
        loop.at_start = loop.randoms()
        if self._left:
            self._save(self.saves, loop, wait=True)
        return iter(loop.items)

    def begin_turn(self, loop: Loop[Any]) -> None:
        """Begin a turn. A turn interrupted in an earlier attempt gets its earlier random states."""
        if loop not in self._open:
            return
        if loop.to_restore is None:
            loop.at_turn = loop.randoms()
        else:
            loop.at_turn, loop.to_restore = loop.to_restore, None
            loop.set_randoms(loop.at_turn)

    def turned(self, loop: Loop[Any]) -> None:
        """Finish a turn of a loop: save if due, and stop if requested.

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
        """Finish a loop without further items. It is saved as ended if it carries objects."""
        if self.saves is not None and loop in self._open:
            self._close(loop)
            if loop.carries:
                self._save(self.saves, loop, wait=True)
            self._perhaps_over()

    def leave(self, loop: Loop[Any]) -> None:
        """Finish a loop left by ``break``; the next loop's start saves its carried objects."""
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
        """Restore the default SIGTERM action outside all loops, since none checks for a pause."""
        if not self._open and self.saves is not None:
            self.saves.finish()
            notices.end_on_sigterm()

    def _forget_inside(self, key: str) -> None:
        for known in (self._ended, self._left):
            for inside in [each for each in known if each.startswith(f"{key}.")]:
                del known[inside]

    # ---------------------------------------------------------------- saving

    def _save(self, saves: Saves, cursor: Loop[Any], *, wait: bool) -> None:
        saves.save(lambda: self._collected(cursor), (self._open or [cursor])[0].done, wait=wait)
        self._left.clear()

    def _collected(self, cursor: Loop[Any]) -> SavedLoops:
        carries = {**{each.key: each.carries for each in self._open}, **self._left}
        writes = votes.rank() == 0
        return SavedLoops(
            cursor.key,
            {**self._ended, **{each.key: each.place(ended=False) for each in self._open}},
            random_states.capture(),
            {key: carried.states(each) for key, each in carries.items() if each and writes},
        )

    # ---------------------------------------------------------------- resuming

    def _begin(self, folder: Path) -> Saves:
        found = commits.latest()
        saved = None if found is None else saved_loops.read(found, votes.rank())
        if found is not None and saved is None:
            _log(f"checkpoint {found.name} was not saved by a loop: starts at the first iteration")
        if found is not None and saved is not None:
            self._earlier = Earlier(found, saved)
            if not saved.now:
                _log("this rank did not exist at the last save: its random states are new")
        return Saves(folder, found, self._clock)

    def _resume(self, loop: Loop[T], earlier: Earlier) -> Iterator[T]:
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
        """Restore everything: the program is where the save was made."""
        for each in self._open:
            earlier.apply(each)
        loop.to_restore = None
        if earlier.saved.now:
            random_states.restore(earlier.saved.now)
        _log(f"resumes after {_far(self._open or [loop])}")
        self._earlier = None


class Earlier(NamedTuple):
    """Last save of an earlier attempt, and its folder."""

    folder: Path
    saved: SavedLoops

    def apply(self, loop: Loop[Any]) -> None:
        """Restore the objects that a loop carries."""
        carried.apply_all(loop.carries, saved_loops.states(self.folder, loop.key))
        if self.saved.now:
            carried.set_generators(loop.carries, self.saved.places[loop.key]["generators"])


def _length(loop: Loop[Any]) -> int | None:
    try:
        return len(loop)
    except TypeError:  # items without a length
        return None


def _share(loops: list[Loop[Any]]) -> float | None:
    """Return the fraction of the outermost loop that is done, or None if its length is unknown."""
    done, of_one = 0.0, 1.0
    for each in loops:
        length = _length(each)
        if length is None:
            break
        done += each.done / max(length, 1) * of_one
        of_one /= max(length, 1)
    return None if loops and _length(loops[0]) is None else done


def _far(loops: list[Loop[Any]]) -> str:
    """Return a text with the turns done of each loop, outermost first."""
    lengths = [(each.done, _length(each)) for each in loops]
    return ", ".join(
        f"{done} of {n}" if n is not None else f"{done} iterations" for done, n in lengths
    )


def _log(text: str) -> None:
    print(f"benchpool: {text}", file=sys.stderr, flush=True)


program = LoopOrder()
