"""Failed inputs of an IPython session: they never block a later submission."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchpool.cells import NotebookCell

_failed: weakref.WeakKeyDictionary[Any, set[int]] = weakref.WeakKeyDictionary()


def watch(ipython: Any) -> None:
    """Record from now on which inputs fail, by number. Registers once per session."""
    if ipython in _failed:
        return
    numbers = _failed[ipython] = set()

    def ended(result: Any) -> None:
        if not result.success and result.info.store_history:
            numbers.add(len(ipython.user_ns.get("In", [])) - 1)

    ipython.events.register("post_run_cell", ended)


def of(ipython: Any) -> frozenset[int]:
    """Return the numbers of the inputs that failed since ``watch`` was called."""
    return frozenset(_failed.get(ipython, ()))


def without(cells: Sequence[NotebookCell], failed: frozenset[int]) -> list[NotebookCell]:
    """Return the cells without the failed ones, or all cells if that leaves a name undefined.

    Args:
        cells: Inputs with IDs such as ``in-3``, and the selected code.
        failed: Their numbers.
    """
    from benchpool.cells import choose

    ids = {f"in-{number}" for number in failed}
    kept = [each for each in cells if each.id not in ids]
    errors = [each for each in choose(kept).problems if each.level == "error"]
    return list(cells) if errors else kept
