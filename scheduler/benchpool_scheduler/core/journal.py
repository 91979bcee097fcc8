"""What a pass has changed, so that it can be taken back: the last change first.

Whoever changes something under a pass records how to undo it. A pass, and every try inside it,
begins with a ``savepoint`` and goes back to it with ``rollback``; nothing needs an inverse of its
own for that. What facts change, between passes, is not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Undo = tuple[Any, ...]
"""What takes a change back, with its arguments behind it: one object each, for there are many."""


class Journal:
    """The changes of the present pass.

    Attributes:
        record: Adds how to undo the change that was just made.

    >>> numbers, journal = [1], Journal()
    >>> numbers.append(2)
    >>> journal.record((numbers.remove, 2))
    >>> savepoint = journal.savepoint()
    >>> numbers.append(3)
    >>> journal.record((numbers.remove, 3))
    >>> journal.rollback(savepoint)
    >>> numbers
    [1, 2]
    >>> journal.rollback()
    >>> numbers
    [1]
    """

    __slots__ = ("_undos", "record")

    def __init__(self) -> None:
        self._undos: list[Undo] = []
        self.record: Callable[[Undo], None] = self._undos.append

    def savepoint(self) -> int:
        """Return the present as something to go back to."""
        return len(self._undos)

    def rollback(self, savepoint: int = 0) -> None:
        """Undo what was changed since a savepoint; by default, all of it."""
        undos = self._undos
        while len(undos) > savepoint:
            undo, *arguments = undos.pop()
            undo(*arguments)

    def forget(self) -> None:
        """Keep all changes: nothing of it will be undone."""
        self._undos.clear()
