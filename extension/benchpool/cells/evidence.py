"""Evidence from the kernel that removes suspected changes.

The kernel's history is read like a notebook. If the cells that make a name have the same text in
the same order in both, the kernel's object is the one that the job will have. Permanent facts about
that object then hold in the job.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchpool.cells import magics
from benchpool.cells.cell_changes import Node
from benchpool.cells.search import Search
from benchpool.kernel.answer import NameFacts

MAX_HISTORY = 400
"""Maximum number of texts of the history that are read, newest first."""


_NUMBERS = frozenset(f"builtins.{each}" for each in ("bool", "int", "float", "complex", "NoneType"))
_ARRAYS = frozenset(["numpy.ndarray", "torch.Tensor"])


class KernelHistory:
    """Code that the kernel ran, read like a notebook; ``first`` is the number of the first text."""

    def __init__(self, texts: Sequence[str], first: int = 1) -> None:
        left = max(0, len(texts) - MAX_HISTORY)
        self.texts = [each.strip() for each in texts[left:]]
        self.first = first + left
        reads = {at: magics.read(text) for at, text in enumerate(self.texts)}
        self.search = Search(reads, len(self.texts) - 1)

    def binder(self, name: str) -> int | None:
        """Return the position of the text that bound a name last."""
        found = self.search.definers.get(name)
        return found[-1] if found else None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts known about the notebook's objects, each a name with the cell that binds it.

    Attributes:
        fixed: Objects that can never change.
        apart: Pairs that share no memory, and never did.
    """

    fixed: frozenset[Node] = frozenset()
    apart: frozenset[tuple[Node, Node]] = frozenset()


def decide(
    search: Search, texts: Sequence[str], history: KernelHistory, names: Mapping[str, NameFacts]
) -> Evidence:
    """Return what the kernel's answer proves.

    Numbers never change. An array keeps the same memory for life, so two arrays that share none now
    never did. For other objects this is unknown. Strings and paths may name a file that changes,
    and prove nothing.

    Args:
        search: The notebook's cells.
        texts: Their texts, by position.
        history: What the kernel ran.
        names: What the kernel's names hold.
    """
    rebound = search.changes.code.rebound | history.search.changes.code.rebound
    of_use = {
        name: facts
        for name, facts in names.items()
        if name not in rebound and (_is_number(facts) or _is_array(facts))
    }
    found = {name: node for name in of_use if (node := _made_alike(name, search, texts, history))}
    numbers = frozenset(found[name] for name in found if _is_number(of_use[name]))
    arrays = [name for name in found if _is_array(of_use[name])]
    apart = frozenset(
        (found[one], found[other])
        for one, other in itertools.permutations(arrays, 2)
        if other not in of_use[one].shares
    )
    return Evidence(numbers, apart)


def _is_number(facts: NameFacts) -> bool:
    return facts.is_immutable and facts.type in _NUMBERS


def _is_array(facts: NameFacts) -> bool:
    return facts.is_walked and facts.type in _ARRAYS


def _made_alike(
    name: str, search: Search, texts: Sequence[str], history: KernelHistory
) -> Node | None:
    """Return the notebook's object that the kernel's name holds, if that is certain."""
    binder = history.binder(name)
    if binder is None:
        return None
    for number in search.definers.get(name, ()):
        if _is_made_alike(name, search, texts, number, history, binder):
            return (name, number)
    return None


def _is_made_alike(
    name: str,
    search: Search,
    texts: Sequence[str],
    number: int,
    history: KernelHistory,
    binder: int,
) -> bool:
    here, there = search.def_uses.get(number), history.search.def_uses[binder]
    if here is None or name not in here.defines or name not in there.defines:
        return False
    if texts[number].strip() != history.texts[binder]:
        return False
    made_here, made_there = made_by(search, number), made_by(history.search, binder)
    if made_here is None or made_there is None:
        return False
    before = [texts[each].strip() for each in made_here]
    return before == [history.texts[each] for each in made_there]


def made_by(search: Search, number: int) -> list[int] | None:
    """Return the cells that one needs, itself last; None if some name has no maker."""
    alone = Search(search.reads, number, search.changes.fresh_copy())
    alone.include(number, "")
    alone.follow(())
    return None if alone.missing else sorted(alone.why)
