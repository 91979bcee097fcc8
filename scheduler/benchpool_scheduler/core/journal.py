"""Journal of the changes of a pass, for undo in reverse order.

Every function that changes something during a pass records how to undo it. A pass, and every trial
inside it, begins with a ``savepoint`` and returns to it with ``rollback``. No inverse functions are
needed for that. Changes by facts, between passes, are not recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Undo = tuple[Any, ...]
"""Function that undoes a change, followed by its arguments. One object each, since there are
many.
"""


class Journal:
    """Changes of the present pass.

    Attributes:
        record: Adds the undo entry of a change that was just made.

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
        """Return the present state as a savepoint for ``rollback``."""
        return len(self._undos)

    def rollback(self, savepoint: int = 0) -> None:
        """Undo all changes since a savepoint, or all changes by default."""
        undos = self._undos
        while len(undos) > savepoint:
            undo, *arguments = undos.pop()
            undo(*arguments)
