"""Offers to send values of the kernel if that saves time, with the time and size of each.

A name is offered if the cells that make it took long and the kernel has its present value. Names
that share objects with it, and names made by the same cells, are sent with it. The choice has the
least total time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from benchpool.cells import cell_needs, value_choice
from benchpool.cells.cell_needs import CellNeeds
from benchpool.cells.notebook_cells import KnownBeside, NotebookCell
from benchpool.cells.value_choice import SendingProblem
from benchpool.kernel.answer import KernelAnswer
from benchpool_scheduler.phrases import data_size, duration

LEAST_S = 30.0
"""Minimum total time of a name's cells for an offer, in seconds."""

MOST_BYTES = 1 << 30
"""Limit for the values sent with a job, in bytes, if the pool gives none."""

MOST_OFFERS = 12
"""Maximum number of offers; all chosen ones are always shown."""

ALWAYS_S = 0.5
LOCAL_BYTES_PER_S = 400e6
UPLOADED_BYTES_PER_S = 200e6
"""Minimum time to send, in seconds; rate to write, hash, unpack and load values, and initial upload
rate, in bytes per second. Measured by `benchmarks/values_along.py`.
"""

MEASURED_BYTES = 8 << 20
"""Minimum upload size for a measurement of the rate, in bytes."""

_CODE = ("function", "type", "module", "builtin_function_or_method")


@dataclass(frozen=True, slots=True)
class ValuePace:
    """Rate at which values are sent, measured at the last upload."""

    bytes_per_s: float = UPLOADED_BYTES_PER_S

    def seconds(self, size: int, *, stored: bool = False) -> float:
        """Return the time to send a size in bytes, in seconds; ``stored`` values need no upload.

        >>> pace = ValuePace(100e6)
        >>> pace.seconds(400_000_000), pace.seconds(400_000_000, stored=True)
        (5.5, 1.5)
        """
        upload = 0.0 if stored else size / self.bytes_per_s
        return ALWAYS_S + size / LOCAL_BYTES_PER_S + upload

    def after(self, size: int, seconds: float) -> ValuePace:
        """Return the rate after an upload of this size in bytes and duration in seconds.

        >>> ValuePace(100e6).after(400_000_000, 2.0), ValuePace(100e6).after(1000, 2.0)
        (ValuePace(bytes_per_s=200000000.0), ValuePace(bytes_per_s=100000000.0))
        """
        if size < MEASURED_BYTES or seconds <= 0:
            return self
        return ValuePace(size / seconds)


@dataclass(frozen=True, slots=True)
class ValueOffer:
    """Names whose values may be sent together.

    Attributes:
        text: Time to make them again, and to send them if possible.
        chosen: They are in the choice with the least total time.
        obstacle: Reason why they cannot be sent; empty if none is known.
    """

    names: tuple[str, ...]
    text: str
    chosen: bool
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class ValueCandidates:
    """Names that would save time. The key of a group is the first of its names.

    Attributes:
        needs: Cells that the selection runs, and their needs.
        seconds: Duration of cells in seconds, by position.
        groups: The group of each name.
        saved: Duration of the cells that need not run, in seconds, by group.
        sizes: Size in bytes, by group.
        pace: Rate of sending.
        most: Limit for the values sent together, in bytes.
        stored: Groups sent before whose objects are the same now. The pool has them, unless they
            were changed in place since.
    """

    needs: CellNeeds
    seconds: Mapping[int, float]
    groups: Mapping[str, str]
    saved: Mapping[str, float]
    sizes: Mapping[str, int]
    pace: ValuePace
    most: int = MOST_BYTES
    stored: frozenset[str] = frozenset()

    def offers(self, obstacles: Mapping[str, str]) -> list[ValueOffer]:
        """Return the offers: first the chosen ones, then those that save the most time.

        Args:
            obstacles: Reasons why names cannot be sent, by name.
        """
        against = self._against(obstacles)
        chosen = self._chosen(frozenset(self.saved.keys() - against.keys()))
        shown = sorted(self.saved, key=lambda each: (each not in chosen, -self.saved[each], each))
        return [
            ValueOffer(
                self._names(group),
                self._text(group, may_go=group not in against),
                group in chosen,
                against.get(group, ""),
            )
            for group in shown[: max(MOST_OFFERS, len(chosen))]
        ]

    def _names(self, group: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, each in self.groups.items() if each == group))

    def _text(self, group: str, *, may_go: bool) -> str:
        text, size = f"recompute {duration(self.saved[group])}", self.sizes[group]
        if not may_go:
            return text
        taken = duration(ceil(self._send_s(group)))
        same = " if unchanged since it was sent" if group in self.stored else ""
        return f"{text} / send {data_size(size)}, {taken}{same}"

    def _send_s(self, group: str) -> float:
        return self.pace.seconds(self.sizes[group], stored=group in self.stored)

    def _against(self, obstacles: Mapping[str, str]) -> dict[str, str]:
        found = {self.groups[name]: why for name, why in obstacles.items() if name in self.groups}
        for group, size in self.sizes.items():
            if size > self.most:
                found[group] = f"{data_size(size)}, the limit is {data_size(self.most)}"
        return found

    def _chosen(self, able: frozenset[str]) -> frozenset[str]:
        """Return the groups with the least total time that fit into the size limit."""
        while True:
            chosen = self._cheapest(able)
            if sum(self.sizes[group] for group in chosen) <= self.most:
                return chosen
            able -= {min(chosen, key=lambda each: self.saved[each] / max(1, self.sizes[each]))}

    def _cheapest(self, able: frozenset[str]) -> frozenset[str]:
        """Return the groups with the least total time, without those needed in an older state."""
        needs = self.needs
        while True:
            groups = {name: group for name, group in self.groups.items() if group in able}
            send_s = {group: self._send_s(group) for group in able}
            problem = SendingProblem(needs.forced, needs.needs, self.seconds, groups, send_s)
            chosen = value_choice.cheapest(problem)
            runs = problem.running(chosen)[0]
            older = {
                group
                for name, group in groups.items()
                for cell in runs
                if group in chosen
                and name in needs.needs.get(cell, {})
                and cell <= needs.last_touched[name]
            }
            if not older:
                return chosen
            able -= older


def candidates(
    cells: Sequence[NotebookCell],
    kernel: KernelAnswer,
    seconds: Mapping[int, float],
    pace: ValuePace,
    most: int = MOST_BYTES,
    stored: Collection[str] = (),
) -> ValueCandidates:
    """Return the names that would save time if their values were sent.

    Args:
        seconds: Duration of the cells' last runs in seconds, by position.
        most: Limit for the values sent together, in bytes.
        stored: Names whose values were sent before, of objects that are the same now.
    """
    found = cell_needs.of(cells, KnownBeside(kernel))
    shared = _shared(found, kernel)
    groups = _made_together(found, shared)
    sizes = _sizes(shared, groups, kernel)
    problem = SendingProblem(
        found.forced, found.needs, seconds, groups, dict.fromkeys(sizes, pace.seconds(0))
    )
    spared = problem.running(frozenset())[0] - problem.running(frozenset(sizes))[0]
    saved = {group: _seconds(spared & problem.behind(group), seconds) for group in sizes}
    worth = {group for group in sizes if saved[group] >= LEAST_S}
    return ValueCandidates(
        found,
        seconds,
        {name: group for name, group in groups.items() if group in worth},
        {group: saved[group] for group in worth},
        {group: sizes[group] for group in worth},
        pace,
        most,
        frozenset(worth - {group for name, group in groups.items() if name not in stored}),
    )


def _shared(found: CellNeeds, kernel: KernelAnswer) -> dict[str, str]:
    """Return, for each name that can be sent, the first of the names it shares objects with.

    All of these are needed, are held by the kernel, and have the value that all their users need.
    """
    needed = found.last_touched.keys()
    able = {name for name in needed if _can_go(name, found, kernel)}
    groups: dict[str, str] = {}
    for name in able:
        group = kernel.group_of(name) & needed
        if group <= able:
            groups[name] = min(group)
    return groups


def _made_together(found: CellNeeds, shared: Mapping[str, str]) -> dict[str, str]:
    """Return the group of each name: names made by the same cells are sent together.

    Sending only one of them would save none of these cells.
    """
    makers: dict[str, frozenset[int]] = {}
    for name, group in shared.items():
        makers[group] = makers.get(group, frozenset()) | found.makers(name)
    first: dict[frozenset[int], str] = {}
    for group in sorted(makers):
        first.setdefault(makers[group], group)
    return {name: first[makers[group]] for name, group in shared.items()}


def _sizes(
    shared: Mapping[str, str], groups: Mapping[str, str], kernel: KernelAnswer
) -> dict[str, int]:
    """Return the size of each group in bytes; shared memory counts with the largest name."""
    parts: dict[str, int] = {}
    for name, part in shared.items():
        parts[part] = max(parts.get(part, 0), kernel.names[name].bytes)
    sizes = dict.fromkeys(groups.values(), 0)
    for part, size in parts.items():
        sizes[groups[part]] += size
    return sizes


def _can_go(name: str, found: CellNeeds, kernel: KernelAnswer) -> bool:
    facts = kernel.names.get(name)
    if facts is None or name in found.busy or facts.type.rpartition(".")[2] in _CODE:
        return False
    users = [cell for cell, names in found.needs.items() if name in names]
    makers = found.makers(name)
    after = [cell for cell in users if cell not in makers]
    return bool(makers) and all(cell > found.last_touched[name] for cell in after)


def _seconds(cells: frozenset[int], seconds: Mapping[int, float]) -> float:
    return sum(seconds.get(cell, 0.0) for cell in cells)
