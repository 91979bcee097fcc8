"""Evidence from the kernel that removes suspected changes.

The kernel's history is read like a notebook. If the cells that make a name have the same text in
the same order in both, the kernel's object is the one that the job will have. Permanent facts about
that object then hold in the job.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchpool.cells import magics
from benchpool.cells.cell_changes import Node
from benchpool.cells.search import Search, figures_noted
from benchpool.kernel.answer import NameFacts

MAX_HISTORY = 400
"""Maximum number of texts of the history that are read, newest first."""


_NUMBERS = frozenset(f"builtins.{each}" for each in ("bool", "int", "float", "complex", "NoneType"))
_ARRAYS = frozenset(["numpy.ndarray", "torch.Tensor"])


class KernelHistory:
    """Code that the kernel ran, read like a notebook; ``first`` is the number of the first text.

    ``def_uses`` are the names that each text uses and defines, by its position.
    """

    def __init__(self, texts: Sequence[str], first: int = 1) -> None:
        left = max(0, len(texts) - MAX_HISTORY)
        self.texts = [each.strip() for each in texts[left:]]
        self.first = first + left
        self._reads = {at: magics.read(text) for at, text in enumerate(self.texts)}
        self.def_uses = figures_noted(self._reads)
        self._binders = {
            name: at for at, each in self.def_uses.items() for name in each.possible_definitions
        }

    @functools.cached_property
    def search(self) -> Search:
        """The search in the history. It needs the changes of all texts, which takes time."""
        return Search(self._reads, len(self.texts) - 1)

    @property
    def rebound(self) -> frozenset[str]:
        """Names that functions of the history rebind (``global``)."""
        found = [each for made in self.def_uses.values() for each in made.functions.values()]
        return frozenset[str]().union(*(one.rebinds for each in found for one in each))

    def binder(self, name: str) -> int | None:
        """Return the position of the text that bound a name last."""
        return self._binders.get(name)


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
    proving = {
        name: facts for name, facts in names.items() if _is_number(facts) or _is_array(facts)
    }
    if not proving:
        return Evidence()
    rebound = search.changes.code.rebound | history.rebound
    makers = _Makers(search, texts, history)
    of_use = {name: facts for name, facts in proving.items() if name not in rebound}
    numbers = [name for name, facts in of_use.items() if _is_number(facts)]
    may_change = search.changes.may_change
    fixed = {node for name in numbers if (node := makers.made_alike(name, may_change))}
    pairs = {
        (one, other)
        for one, other in search.changes.tied_pairs
        if _are_apart(one[0], other[0], of_use)
    }
    tied = {node for pair in pairs for node in pair}
    arrays = {makers.made_alike(name, tied.__contains__) for name in {name for name, _ in tied}}
    apart = {pair for pair in pairs if arrays.issuperset(pair)}
    return Evidence(frozenset(fixed), frozenset(apart))


def _are_apart(one: str, other: str, names: Mapping[str, NameFacts]) -> bool:
    """Return whether two names hold arrays that share no memory."""
    both = one in names and other in names and _is_array(names[one]) and _is_array(names[other])
    return one != other and both and other not in names[one].shares


def _is_number(facts: NameFacts) -> bool:
    return facts.is_immutable and facts.type in _NUMBERS


def _is_array(facts: NameFacts) -> bool:
    return facts.is_walked and facts.type in _ARRAYS


class _Makers:
    """Cells that make each object, in the notebook and in the kernel's history."""

    def __init__(self, search: Search, texts: Sequence[str], history: KernelHistory) -> None:
        self._search = search
        self._texts = [each.strip() for each in texts]
        self._history = history
        self._known = frozenset(history.texts)
        self._here: dict[int, list[str] | None] = {}
        self._there: dict[int, list[str] | None] = {}

    def made_alike(self, name: str, is_of_use: Callable[[Node], bool]) -> Node | None:
        """Return the notebook's object that the kernel's name holds, if that is certain.

        None if the answer is of no use.
        """
        binder = self._history.binder(name)
        if binder is None or name not in self._history.def_uses[binder].defines:
            return None
        numbers = [
            number
            for number in self._search.definers.get(name, ())
            if self._texts[number] == self._history.texts[binder]
            and name in self._search.def_uses[number].defines
        ]
        if not any(is_of_use((name, number)) for number in numbers):
            return None
        alike = (number for number in numbers if self._is_made_alike(number, binder))
        found = next(alike, None)
        return None if found is None else (name, found)

    def _is_made_alike(self, number: int, binder: int) -> bool:
        if number not in self._here:
            self._here[number] = _texts_before(self._search, self._texts, number)
        made_here = self._here[number]
        if made_here is None or not self._known.issuperset(made_here):
            return False
        if binder not in self._there:
            history = self._history
            self._there[binder] = _texts_before(history.search, history.texts, binder)
        return made_here == self._there[binder]


def _texts_before(search: Search, texts: Sequence[str], number: int) -> list[str] | None:
    """Return the texts that one cell needs, its own last; None if some name has no maker."""
    alone = Search(search.reads, number, search.changes.fresh_copy(), search.def_uses)
    alone.include(number, "")
    alone.follow(())
    return None if alone.missing else [texts[each] for each in sorted(alone.why)]
