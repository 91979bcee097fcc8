"""What is found out about a cell and its functions, as data. Lines count from 1 in the cell."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchpool.cells.expressions import Chain


@dataclass(frozen=True, slots=True)
class Called:
    """One call: the dotted name, and the names that each argument is made of."""

    chain: Chain
    arguments: tuple[frozenset[str], ...]
    keywords: tuple[tuple[str | None, frozenset[str]], ...]
    line: int


@dataclass(slots=True)
class FunctionSummary:
    """What calling a function of the notebook uses and changes.

    Attributes:
        parameters: Names in order, without ``self``; ``rest`` takes all further arguments.
        uses: Names from outside, with the line of their use.
        changes: Parameters and outer names that the body changes by itself.
        calls: The calls in it, whose changes come on top.
        aliases: Pairs of its names that may be the same object.
        defines_unknown: How it may define names that cannot be seen (``exec()``).
    """

    parameters: tuple[str, ...]
    rest: str | None
    uses: dict[str, int]
    changes: set[str]
    calls: tuple[Called, ...]
    aliases: set[tuple[str, str]]
    defines_unknown: str | None = None


@dataclass(slots=True)
class DefUse:
    """What a cell uses, defines and changes; lines count from 1 in the cell."""

    uses: dict[str, int] = field(default_factory=dict)
    defines: set[str] = field(default_factory=set)
    may_define: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    changes: set[str] = field(default_factory=set)
    calls: list[Called] = field(default_factory=list)
    aliases: set[tuple[str, str]] = field(default_factory=set)
    functions: dict[str, list[FunctionSummary]] = field(default_factory=dict)
    ambient: dict[str, int] = field(default_factory=dict)
    defines_unknown: str | None = None
    bound_at: dict[str, frozenset[str]] = field(default_factory=dict)
    """What is surely bound when a name is first read; for what calling it uses by then."""

    forgiven: set[str] = field(default_factory=set)
    """Names whose absence it expects (``except NameError``)."""

    asks: int | None = None
    """The line where it asks for input."""

    @property
    def possible_definitions(self) -> set[str]:
        """All names that it may bind."""
        return self.defines | self.may_define
