"""Facts about a cell and its functions, as data. Lines count from 1 in the cell."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Chain = tuple[str, ...]
"""``a.b().c[0]`` as ``("a", "b", "()", "c", "[]")``; empty if it does not begin with a name."""

LOGGERS = "the loggers"
"""Stands for all loggers of ``logging``, which keep their handlers."""

INSTANCES = frozenset(["self", "cls", "mcs", "mcls", "metacls"])
"""Usual names of a method's first parameter."""


@dataclass(frozen=True, slots=True)
class CellValue:
    """Possible origins of an expression's value, by the names in it.

    Attributes:
        same: Names that it may be.
        part: Names that it may be an element, an attribute or a view of.
        inside: Names that it keeps.
        calls: Calls whose result it may be; ``part_of_calls``: calls whose result it is a part of.
        mentioned: All names in it, arithmetic included.
        literal: ``data`` for numbers, strings and arithmetic, ``container`` for displays of lists
            and the like, ``iterator`` for generator expressions.
        bound: The method, if it is a method that was not called (``items.append``).
        is_false: It is the literal ``False`` or ``None``.
        attributes: Attributes that it is or keeps, by their last word; these may be methods.
        items: Names that are its elements, if it is a display of names.
        operator: The method of the operator that returns it (``__add__``).
        is_fixed: It is an immutable number, string or tuple of such.
        holds_fixed: It is a display of such values: an element of it cannot change.
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
    """One call: its dotted name, its receiver and its arguments.

    Attributes:
        alone: It is a statement by itself, whose result is unused.
        shown: It ends its cell, which shows the result.
        for_a_while: Its setting ends with the surrounding ``with``.
        put_back: Libraries whose settings a surrounding ``with`` restores.
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
        """Return the values at a position or keyword, if given."""
        if isinstance(where, int):
            return [*self.arguments[where : where + 1]]
        return [value for word, value in self.keywords if word == where]


@dataclass(frozen=True, slots=True)
class Alias:
    """Binding of a name to a value, or to the elements of a value (``for``, unpacking)."""

    target: str
    value: CellValue
    is_element: bool = False
    is_kept: bool = False
    """Whether the target keeps the value (``target.x = value``) and is not the value itself."""


@dataclass(slots=True)
class FunctionSummary:
    """Names that calling a function of the notebook uses and changes.

    Attributes:
        parameters: Names in order, without ``self``; ``rest`` takes all further arguments.
        own: Names that its body binds.
        uses: Names from outside, with the line of their use.
        changes: Names that the body itself changes, and how deep (``Change``).
        calls: The calls in it, whose changes are added.
        aliases: What its names may be.
        returns: Values that it may return or yield.
        yields: It is a generator.
        keeps_state: An inner function changes objects made by the call (a closure with state).
        gives_function: It returns an inner function that is called later.
        grows: Parameters with a mutable default (``seen=[]``).
        owner: The class whose method it is.
        defines_unknown: How it may define names that the analysis cannot see (``exec()``).
        rebinds: Outer names that it rebinds (``global``).
        body: Its statements; ``instance`` is the name of the object in a method.
        defaults: Names that parameters stand for by default.
        decorators: Dotted names of its decorators; ``is_property`` if it is a property.
        implicit: Methods that Python calls for it; None until they were searched.
        forgiven: Names of ``uses`` that it expects may be missing.
        iterated: Values that its loops iterate over.
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
    iterated: tuple[CellValue, ...] = ()


@dataclass(frozen=True, slots=True)
class ClassSummary:
    """Class of the notebook: its bases by dotted name, and the lists and dicts in its body.

    ``only_fixed``: it has no method, and only numbers and strings in its body. ``holds``: names of
    the notebook that its fields are made of.
    """

    bases: tuple[Chain, ...]
    shared: frozenset[str]
    metaclass: str | None = None
    only_fixed: bool = False
    holds: frozenset[str] = frozenset()


@dataclass(slots=True)
class DefUse:
    """Names that a cell uses, defines and changes. Lines count from 1 in the cell."""

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
    """How it may use names that the analysis cannot see (``eval(text)``)."""

    star: str | None = None
    """Module from which it imports all names (``from torch import *``)."""

    yields: bool = False
    indexed: set[str] = field(default_factory=set)
    """Names of which it reads an element."""

    bound_at: dict[str, frozenset[str]] = field(default_factory=dict)
    """Names surely bound when a name is first read; they limit what calling that name needs."""

    body: Sequence[ast.AST] = ()
    implicit: frozenset[tuple[str, str]] | None = None
    """Methods that Python calls implicitly for it; None until they were searched."""

    forgiven: set[str] = field(default_factory=set)
    """Names that may be missing (``except NameError``), or that may mean something else in a
    string.
    """

    iterated: list[CellValue] = field(default_factory=list)
    """Values that its loops iterate over."""

    renames: dict[str, Chain] = field(default_factory=dict)
    """Names that stand for an attribute of a module (``rand = np.random.rand``)."""

    set_by_text: set[str] = field(default_factory=set)
    """Names of the notebook that it sets by a string (``globals()["x"] = 1``)."""

    deletes: set[str] = field(default_factory=set)
    asks: int | None = None
    """Line where it asks for input."""

    @property
    def possible_definitions(self) -> set[str]:
        """All names that it may bind."""
        return self.defines | self.may_define
