"""Effects of running code, as data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchpool.cells.alias_graph import Change, HeldNames


@dataclass(slots=True)
class Effect:
    """Effects of running code, in the names of the scope where it stands.

    Attributes:
        changes: Names that change, and how deep.
        outer: Names of the notebook itself that its functions change, and how deep.
        keeps: Names, and what each keeps from now on.
        setting: A setting that affects all later code.
        may_set: An unknown library function that may set something for later code.
        seeds: Random generators that are seeded, and with what.
        draws: Random generators that are drawn from.
        draws_when_made: Generators from which an object draws its initial values.
        passes: Generators drawn from by iterating objects such as data loaders.
        iterates: Names of objects that it iterates, or whose parts it iterates.
        asks_unknown: An unknown library function that is called; it may draw too.
        trains: It fits a model, which may take long.
        calls: Names of objects that are called, where the call may change them.
        calls_held: Names of objects that may call the objects they keep.
    """

    changes: dict[str, Change] = field(default_factory=dict)
    outer: dict[str, Change] = field(default_factory=dict)
    keeps: dict[str, HeldNames] = field(default_factory=dict)
    setting: str | None = None
    may_set: str | None = None
    seeds: dict[str, str] = field(default_factory=dict)
    draws: set[str] = field(default_factory=set)
    draws_when_made: set[str] = field(default_factory=set)
    passes: set[str] = field(default_factory=set)
    iterates: set[str] = field(default_factory=set)
    asks_unknown: str | None = None
    trains: bool = False
    calls: set[str] = field(default_factory=set)
    calls_held: set[str] = field(default_factory=set)

    @property
    def is_seen(self) -> bool:
        """Whether it changes, sets, seeds or draws anything."""
        seen = (self.changes, self.outer, self.keeps, self.setting, self.seeds, self.draws)
        return any(seen)

    def change(self, names: Iterable[str], how: Change) -> None:
        """Note that names change to the given depth."""
        for name in names:
            self.changes[name] = max(how, self.changes.get(name, how))

    def change_value(self, held: HeldNames, how: Change) -> None:
        """Note that a value changes: the names that it is, is a part of, and keeps."""
        self.change(held.same, how)
        self.change(held.part, Change.DEEP)
        if how >= Change.DEEP:
            self.change(held.inside, Change.DEEP)
        if how is Change.THROUGH:
            self.change(held.quiet, Change.DEEP)

    def keep(self, name: str, held: HeldNames) -> None:
        """Note that a name keeps a value from now on."""
        if held.names:
            self.keeps[name] = self.keeps[name] | held if name in self.keeps else held

    def change_outer(self, names: Mapping[str, Change]) -> None:
        """Note that names of the notebook itself change."""
        for name, how in names.items():
            self.outer[name] = max(how, self.outer.get(name, how))

    def add(self, more: Effect) -> None:
        """Add all effects of another one."""
        for name, how in more.changes.items():
            self.change([name], how)
        for name, held in more.keeps.items():
            self.keep(name, held)
        self.calls |= more.calls
        self.calls_held |= more.calls_held
        self.iterates |= more.iterates
        self.add_ambient(more)

    def add_ambient(self, more: Effect) -> None:
        """Add the effects of another one except those on its own names."""
        self.change_outer(more.outer)
        self.trains = self.trains or more.trains
        self.asks_unknown = self.asks_unknown or more.asks_unknown
        self.setting = self.setting or more.setting
        self.may_set = self.may_set or more.may_set
        self.seeds.update(more.seeds)
        self.draws |= more.draws
        self.draws_when_made |= more.draws_when_made
        self.passes |= more.passes


@dataclass(slots=True)
class CallSummary:
    """Effects of calling a function of the notebook, including all that it calls.

    ``effect.changes``, ``calls`` and ``calls_held`` name its parameters. ``fields`` names the
    fields of its object, which it may call (``calls_fields``) or iterate (``iterates_fields``).
    ``returns`` names parameters, ``self`` and names of the notebook.
    """

    effect: Effect = field(default_factory=Effect)
    fields: dict[str, Change] = field(default_factory=dict)
    calls_fields: bool = False
    iterates_fields: bool = False
    returns: HeldNames = field(default_factory=HeldNames)

    @property
    def of_object(self) -> Change:
        """Depth of the change of an object, from what its method does to its fields."""
        if Change.THROUGH in self.fields.values():
            return Change.THROUGH
        return Change.DEEP if any(self.fields) else Change.ITEM

    def size(self) -> tuple[int, ...]:
        """Return numbers that grow with the findings; equal sizes end the iteration."""
        effect = self.effect
        hows = sum([*effect.changes.values(), *effect.outer.values(), *self.fields.values()])
        random = len(effect.seeds) + len(effect.draws) + len(effect.draws_when_made)
        random += len(effect.passes)
        kept = sum(len(held.names) for held in effect.keeps.values())
        return (
            hows,
            random,
            kept,
            len(self.returns.names),
            effect.setting is not None,
            effect.may_set is not None,
            effect.trains,
            effect.asks_unknown is not None,
            len(effect.calls) + len(effect.calls_held),
            self.calls_fields,
            self.iterates_fields,
        )
