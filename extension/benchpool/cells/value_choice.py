"""Choice of values to send and cells to run again for the least total time. Pure.

A cell that runs needs each of its names: sent as a value, or made by the cells that provide it,
which need names in turn. Names that share objects form one group: all sent, or all made again. The
least total time is the minimum cut between the cells that must run and the sink. Cutting a group's
edge sends it; cutting a cell's edge runs it (Ford and Fulkerson, shortest paths first).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

Node = Hashable
Needs = Mapping[int, Mapping[str, frozenset[int]]]
"""For each cell, its names and the cells that make each of them."""


@dataclass(frozen=True)
class SendingProblem:
    """Input of the decision.

    Attributes:
        forced: Cells that run whatever is sent.
        needs: Needs of each cell that may run.
        seconds: Run time of each cell, in seconds.
        groups: The group of each name that may be sent.
        send_s: Time to send each group, in seconds.
    """

    forced: frozenset[int]
    needs: Needs
    seconds: Mapping[int, float]
    groups: Mapping[str, str]
    send_s: Mapping[str, float]

    @cached_property
    def makers(self) -> Mapping[str, frozenset[int]]:
        """Cells that make the names of each group."""
        found: dict[str, set[int]] = {}
        for names in self.needs.values():
            for name, cells in names.items():
                if name in self.groups:
                    found.setdefault(self.groups[name], set()).update(cells)
        return {group: frozenset(cells) for group, cells in found.items()}

    def running(self, sent: frozenset[str]) -> tuple[frozenset[int], frozenset[str]]:
        """Return the cells that run if these groups are sent, and the groups they then need."""
        cells, needed = set[int](), set[str]()
        waiting = list(self.forced)
        while waiting:
            cell = waiting.pop()
            if cell in cells:
                continue
            cells.add(cell)
            for name, made_by in self.needs.get(cell, {}).items():
                group = self.groups.get(name)
                if group in sent:
                    needed.add(str(group))
                else:
                    waiting += made_by if group is None else self.makers[group]
        return frozenset(cells), frozenset(needed)

    def behind(self, group: str) -> frozenset[int]:
        """Return the cells that run to make a group."""
        return replace(self, forced=self.makers[group]).running(frozenset())[0]

    def seconds_of(self, sent: frozenset[str]) -> float:
        """Return the total time in seconds if these groups are sent."""
        cells, needed = self.running(sent)
        ran = sum(self.seconds.get(cell, 0.0) for cell in cells)
        return ran + sum(self.send_s[group] for group in needed)


def cheapest(problem: SendingProblem) -> frozenset[str]:
    """Return the groups to send.

    >>> slow_load = SendingProblem(
    ...     forced=frozenset({2}),
    ...     needs={2: {"X": frozenset({1})}},
    ...     seconds={1: 840.0},
    ...     groups={"X": "X"},
    ...     send_s={"X": 3.0},
    ... )
    >>> sorted(cheapest(slow_load))
    ['X']
    """
    flow = _Flow()
    for cell in problem.forced:
        flow.add("begin", cell, inf)
    for cell, names in problem.needs.items():
        flow.add(cell, "end", problem.seconds.get(cell, 0.0))
        for name, made_by in names.items():
            group = problem.groups.get(name)
            if group is not None:
                flow.add(cell, ("needed", group), inf)
                continue
            for each in made_by:
                flow.add(cell, each, inf)
    for cell in {each for each in problem.seconds if each not in problem.needs}:
        flow.add(cell, "end", problem.seconds[cell])
    for group, seconds in problem.send_s.items():
        flow.add(("needed", group), ("made", group), seconds)
        for each in problem.makers.get(group, ()):
            flow.add(("made", group), each, inf)
    reached = flow.cut("begin", "end")
    return frozenset(
        group
        for group in problem.send_s
        if ("needed", group) in reached and ("made", group) not in reached
    )


class _Flow:
    """Network with capacities, and the source side of its minimum cut."""

    def __init__(self) -> None:
        self._left: dict[Node, dict[Node, float]] = {}

    def add(self, start: Node, end: Node, capacity: float) -> None:
        here = self._left.setdefault(start, {})
        here[end] = here.get(end, 0.0) + capacity
        self._left.setdefault(end, {}).setdefault(start, 0.0)

    def cut(self, begin: Node, end: Node) -> set[Node]:
        """Return the nodes reachable from the source when no more can flow."""
        while True:
            before = self._before(begin, end)
            if end not in before:
                return set(before)
            path, node = [], end
            while node != begin:
                path.append((before[node], node))
                node = before[node]
            most = min(self._left[start][stop] for start, stop in path)
            for start, stop in path:
                self._left[start][stop] -= most
                self._left[stop][start] += most

    def _before(self, begin: Node, end: Node) -> dict[Node, Node]:
        found: dict[Node, Node] = {begin: begin}
        waiting = deque([begin])
        while waiting and end not in found:
            node = waiting.popleft()
            for each, left in self._left.get(node, {}).items():
                if left > 1e-9 and each not in found:
                    found[each] = node
                    waiting.append(each)
        return found
