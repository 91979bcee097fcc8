"""What is found out about a cell and its functions, as data. Lines count from 1 in the cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchpool.cells.shapes import Chain


@dataclass(frozen=True, slots=True)
class Called:
    """One call: the dotted name, and the names that each argument is made of."""

    chain: Chain
    arguments: tuple[frozenset[str], ...]
    keywords: tuple[tuple[str | None, frozenset[str]], ...]
    line: int


@dataclass(slots=True)
class Summary:
    """What calling a function of the notebook needs and changes.

    Attributes:
        parameters: Names in order, without ``self``; ``rest`` takes all further arguments.
        needs: Names from outside, with the line of their use.
        changes: Parameters and outer names that the body changes by itself.
        calls: The calls in it, whose changes come on top.
        aliases: Pairs of its names that may be the same object.
        gives_unknown: How it may define names that cannot be seen (``exec()``).
    """

    parameters: tuple[str, ...]
    rest: str | None
    needs: dict[str, int]
    changes: set[str]
    calls: tuple[Called, ...]
    aliases: set[tuple[str, str]]
    gives_unknown: str | None = None


@dataclass(slots=True)
class Footprint:
    """What a cell needs, gives and changes; lines count from 1 in the cell."""

    needs: dict[str, int] = field(default_factory=dict)
    gives: set[str] = field(default_factory=set)
    may_give: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    changes: set[str] = field(default_factory=set)
    calls: list[Called] = field(default_factory=list)
    aliases: set[tuple[str, str]] = field(default_factory=set)
    functions: dict[str, list[Summary]] = field(default_factory=dict)
    ambient: dict[str, int] = field(default_factory=dict)
    gives_unknown: str | None = None
    bound_at: dict[str, frozenset[str]] = field(default_factory=dict)
    """What is surely bound when a name is first read; for what calling it needs by then."""

    forgiven: set[str] = field(default_factory=set)
    """Names whose absence it expects (``except NameError``)."""

    asks: int | None = None
    """The line where it asks for input."""

    @property
    def gives_perhaps(self) -> set[str]:
        """All names that it may bind."""
        return self.gives | self.may_give
