"""``checkpoint.loop``: a loop that goes on after a pause exactly where it was."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from benchpool.checkpoint import carried, loop_order, random_states

T = TypeVar("T")


def loop(items: Iterable[T], *, minutes: float = 10.0, **carries: Any) -> Loop[T]:
    """Go through items in a job that may be paused at any time, and go on exactly where it was.

    For example::

        for step in checkpoint.loop(range(N), model=model, optimizer=optimizer, losses=losses):
            ...

    What is named is saved together with all random states (Python, NumPy, torch, CUDA), as one
    whole checkpoint: when the pool asks the job to pause, which then ends as paused, every
    ``minutes``, and at the end. Beside the training where memory allows it.
    The next attempt finds everything set to the last save and goes on with the next item. Other
    variables are made anew by the program, so name those that the loop changes.
    Outside a job this is the plain loop.

    Args:
        items: What to go through. It must give the same items in each attempt, given the same
            random states; those that are done are passed over, by index where that can be.
        minutes: How often to save at least, where saving takes no more than 5 % of the time.
        carries: Objects with ``state_dict`` and ``load_state_dict``, samplers, random generators,
            and lists, dicts and sets of what the loop gathers.

    Raises:
        TypeError: An object cannot be saved, or lies in parts on several ranks.
        SystemExit: With status 75 after a turn, when the job was asked to pause and has saved.
    """
    for name, value in carries.items():
        carried.check(name, value)
    return Loop(items, minutes * 60.0, carries)


class Loop(Generic[T]):
    """The items of a loop, to be gone through once."""

    def __init__(self, items: Iterable[T], every_s: float, carries: dict[str, Any]) -> None:
        self.items, self.every_s, self.carries = items, every_s, carries
        self.key, self.done, self.inner = "", 0, 0
        self.at_start: dict[str, Any] = {}
        self.at_turn: dict[str, Any] = {}
        self.to_restore: dict[str, Any] | None = None

    def __len__(self) -> int:
        return len(self.items)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[T]:
        return _Turns(self)

    def from_turn(self, done: int) -> Iterator[T]:
        """Return the items from one on; the ones before are passed over."""
        self.done = done
        if isinstance(self.items, Sequence):
            return map(self.items.__getitem__, range(done, len(self.items)))
        source = iter(self.items)
        for _ in range(done):
            next(source, None)
        return source

    def randoms(self) -> dict[str, Any]:
        """Return the random states now, those of carried generators included."""
        return {"all": random_states.capture(), "own": carried.generators(self.carries)}

    def set_randoms(self, said: dict[str, Any]) -> None:
        """Set the random states to what ``randoms`` returned; without any they stay."""
        if said:
            random_states.restore(said["all"])
            carried.set_generators(self.carries, said["own"])

    def place(self, *, ended: bool) -> dict[str, Any]:
        """Return how far it is, as plain values."""
        now = {"done": self.done, "ended": ended, "generators": carried.generators(self.carries)}
        return now if ended else {**now, "at_start": self.at_start, "at_turn": self.at_turn}


class _Turns(Iterator[T]):
    """The iterator of a loop. Nobody but the program holds it, so its end is the loop's."""

    def __init__(self, loop: Loop[T]) -> None:
        self._loop = loop
        self._source: Iterator[T] | None = None

    def __next__(self) -> T:
        if self._source is None:
            self._source = loop_order.program.enter(self._loop)
        else:
            self._loop.done += 1
            loop_order.program.turned(self._loop)
        try:
            item = next(self._source)
        except StopIteration:
            loop_order.program.end(self._loop)
            raise
        loop_order.program.begin_turn(self._loop)
        return item

    def __del__(self) -> None:
        if loop_order is not None:  # it is None while the interpreter ends
            loop_order.program.leave(self._loop)
