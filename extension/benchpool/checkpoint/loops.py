"""``checkpoint.loop``: a loop that continues exactly where it was after a pause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from benchpool.checkpoint import carried, loop_order, random_states

T = TypeVar("T")


def loop(items: Iterable[T], *, minutes: float = 10.0, **carries: Any) -> Loop[T]:
    """Iterate over items in a job that may be paused, and resume exactly where it was.

    For example::

        for step in checkpoint.loop(range(N), model=model, optimizer=optimizer, losses=losses):
            ...

    The named objects are saved together with all random states (Python, NumPy, torch, CUDA), as one
    complete checkpoint. Saves happen every ``minutes``, at the end, and when the pool asks the job
    to pause, which then ends as paused. With one rank, a save runs in parallel with the training if
    memory allows; several ranks wait for each other. The next attempt restores the last save and
    continues with the next item. The program creates all other variables again, so name the
    variables that the loop changes. Outside a job this is an ordinary loop.

    Args:
        items: Items to iterate over. They must be the same in each attempt, given the same random
            states. Finished items are skipped, by index if they are a sequence.
        minutes: Save interval in minutes; longer if saves would take more than 5 % of the time.
        carries: Objects with ``state_dict`` and ``load_state_dict``, samplers, random generators,
            and lists, dicts and sets with the results of the loop.

    Raises:
        TypeError: An object cannot be saved, or is sharded over several ranks.
        SystemExit: Status 75 after a turn, when the job was asked to pause and has saved.
    """
    for name, value in carries.items():
        carried.check(name, value)
    return Loop(items, minutes * 60.0, carries)


class Loop(Generic[T]):
    """Items of a loop, to be iterated once."""

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
        """Return an iterator over the items after the first ``done`` ones."""
        self.done = done
        if isinstance(self.items, Sequence):
            return map(self.items.__getitem__, range(done, len(self.items)))
        source = iter(self.items)
        for _ in range(done):
            next(source, None)
        return source

    def randoms(self) -> dict[str, Any]:
        """Return the present random states, including those of carried generators."""
        return {"all": random_states.capture(), "own": carried.generators(self.carries)}

    def set_randoms(self, state: dict[str, Any]) -> None:
        """Restore the random states that ``randoms`` returned; an empty state changes nothing."""
        if state:
            random_states.restore(state["all"])
            carried.set_generators(self.carries, state["own"])

    def place(self, *, ended: bool) -> dict[str, Any]:
        """Return the position in the loop, as plain values."""
        now = {"done": self.done, "ended": ended, "generators": carried.generators(self.carries)}
        return now if ended else {**now, "at_start": self.at_start, "at_turn": self.at_turn}


class _Turns(Iterator[T]):
    """Iterator of a loop. Only the program holds a reference, so its end is the end of the loop."""

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
        if loop_order is not None:  # it is None at interpreter shutdown
            loop_order.program.leave(self._loop)
