"""What is found out about a cell and its functions, as data. Lines count from 1 in the cell."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Chain = tuple[str, ...]
"""``a.b().c[0]`` as ``("a", "b", "()", "c", "[]")``; empty where it begins with no name."""

LOGGERS = "the loggers"
"""Stands for all loggers of ``logging``, which keep their handlers."""

INSTANCES = frozenset(["self", "cls", "mcs", "mcls", "metacls"])
"""Names that the first parameter of a method has."""


@dataclass(frozen=True, slots=True)
class CellValue:
    """What an expression's value may be made of, by the names in it.

    Attributes:
        same: Names that it may be.
        part: Names that it may be an element, an attribute or a view of.
        inside: Names that it keeps.
        calls: Calls whose results it may be; ``part_of_calls`` whose results it is a part of.
        mentioned: All names in it, arithmetic included.
        literal: ``data`` for numbers, texts and arithmetic, ``container`` for displays of lists
            and the like, ``iterator`` for generator expressions.
        bound: The method, where it is one that was not called (``items.append``).
        is_false: It is the word ``False`` or ``None``.
        attributes: Attributes that it is or keeps, by their last word: methods, perhaps.
        items: Names that are its elements themselves, where it is a display of them.
        operator: The method of the operator that gives it (``__add__``).
        is_fixed: It is a number, a text or a tuple of such: nothing changes it.
        holds_fixed: It is a display of such: what is taken out of it cannot be changed.
    """

    same: frozenset[str] = frozenset()
    part: frozenset[str] = frozenset()
    inside: frozenset[str] = frozenset()
    calls: tuple[Called, ...] = ()
    part_of_calls: tuple[Called, ...] = ()
    mentioned: frozenset[str] = frozenset()
    literal: str | None = None
    bound: str | None = None
    is_false: bool = False
    attributes: frozenset[str] = frozenset()
    items: frozenset[str] = frozenset()
    operator: str | None = None
    is_fixed: bool = False
    holds_fixed: bool = False


@dataclass(frozen=True, slots=True)
class Called:
    """One call: its dotted name, what it is called on, and its arguments.

    ``alone`` says that it is a statement by itself, whose result nobody uses, and ``shown`` that
    it ends its cell, which shows the result; ``for_a_while`` that what it sets ends with its
    ``with``. ``put_back``: libraries whose settings one around it puts
    back.
    """

    chain: Chain
    receiver: CellValue | None
    arguments: tuple[CellValue, ...]
    keywords: tuple[tuple[str | None, CellValue], ...]
    line: int
    alone: bool = False
    for_a_while: bool = False
    put_back: tuple[str, ...] = ()
    shown: bool = False

    @property
    def given(self) -> tuple[CellValue, ...]:
        """All arguments."""
        return (*self.arguments, *[value for _, value in self.keywords])

    def at(self, where: int | str) -> list[CellValue]:
        """Return the argument at a position, or with a keyword, where it is given."""
        if isinstance(where, int):
            return [*self.arguments[where : where + 1]]
        return [value for word, value in self.keywords if word == where]


@dataclass(frozen=True, slots=True)
class Alias:
    """A name that is bound to a value, or to its elements (``for``, unpacking)."""

    target: str
    value: CellValue
    is_element: bool = False
    is_kept: bool = False
    """The target keeps the value (``target.x = value``), rather than being it."""


@dataclass(slots=True)
class FunctionSummary:
    """What calling a function of the notebook uses and changes.

    Attributes:
        parameters: Names in order, without ``self``; ``rest`` takes all further arguments.
        own: Names that its body binds.
        uses: Names from outside, with the line of their use.
        changes: Names that the body changes by itself, and how deep (``Change``).
        calls: The calls in it, whose changes come on top.
        aliases: What its names may be.
        returns: What it may give back, or yield.
        yields: It is a generator.
        keeps_state: A function inside it changes what the call made (a closure with state).
        gives_function: It gives back a function that stands in it, to be called later.
        grows: Parameters with a default that lives on (``seen=[]``).
        owner: The class whose method it is.
        defines_unknown: How it may define names that cannot be seen (``exec()``).
        rebinds: Names around it that it binds anew (``global``).
        body: Its statements; ``instance`` is the name of the object in a method.
        defaults: What parameters are where nothing is given, by names.
        decorators: Dotted names by which it is decorated; ``is_property`` where it is one.
        implicit: Methods that Python calls for it, once they were looked for.
        forgiven: Names of ``uses`` whose absence it expects.
    """

    parameters: tuple[str, ...]
    rest: str | None
    own: frozenset[str]
    uses: dict[str, int]
    changes: dict[str, int]
    calls: tuple[Called, ...]
    aliases: tuple[Alias, ...]
    returns: tuple[CellValue, ...]
    yields: bool = False
    keeps_state: bool = False
    gives_function: bool = False
    grows: frozenset[str] = frozenset()
    owner: str | None = None
    defines_unknown: str | None = None
    setting: str | None = None
    rebinds: frozenset[str] = frozenset()
    body: Sequence[ast.AST] = ()
    instance: str | None = None
    defaults: Mapping[str, frozenset[str]] = field(default_factory=dict)
    decorators: tuple[Chain, ...] = ()
    is_property: bool = False
    implicit: frozenset[tuple[str, str]] | None = None
    forgiven: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """A class of the notebook: its bases by dotted name, and lists and the like in its body.

    ``only_fixed``: it has no method, and nothing in its body but numbers and texts. ``holds``:
    names of the notebook that its fields are made of.
    """

    bases: tuple[Chain, ...]
    shared: frozenset[str]
    metaclass: str | None = None
    only_fixed: bool = False
    holds: frozenset[str] = frozenset()


@dataclass(slots=True)
class DefUse:
    """What a cell uses, defines and changes; lines count from 1 in the cell."""

    uses: dict[str, int] = field(default_factory=dict)
    defines: set[str] = field(default_factory=set)
    may_define: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=dict)
    calls: list[Called] = field(default_factory=list)
    aliases: list[Alias] = field(default_factory=list)
    returns: list[CellValue] = field(default_factory=list)
    functions: dict[str, list[FunctionSummary]] = field(default_factory=dict)
    classes: dict[str, ClassSummary] = field(default_factory=dict)
    ambient: dict[str, int] = field(default_factory=dict)
    defines_unknown: str | None = None
    uses_unknown: str | None = None
    """How it may use names that cannot be seen (``eval(text)``)."""

    star: str | None = None
    """The module whose names it takes all (``from torch import *``)."""

    yields: bool = False
    indexed: set[str] = field(default_factory=set)
    """Names of which an element is read."""

    bound_at: dict[str, frozenset[str]] = field(default_factory=dict)
    """What is surely bound when a name is first read; for what calling it uses by then."""

    body: Sequence[ast.AST] = ()
    implicit: frozenset[tuple[str, str]] | None = None
    """Methods that Python calls for it, once they were looked for."""

    forgiven: set[str] = field(default_factory=set)
    """Names whose absence it expects (``except NameError``), or that a text may mean otherwise."""

    renames: dict[str, Chain] = field(default_factory=dict)
    """Names that stand for a part of something (``rand = np.random.rand``)."""

    set_by_text: set[str] = field(default_factory=set)
    """Names of the notebook that it sets by their text (``globals()["x"] = 1``)."""

    deletes: set[str] = field(default_factory=set)
    asks: int | None = None
    """The line where it asks for input."""

    @property
    def possible_definitions(self) -> set[str]:
        """All names that it may bind."""
        return self.defines | self.may_define
