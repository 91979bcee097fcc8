"""Cells that a job needs to draw the same random numbers."""

from __future__ import annotations

from collections.abc import Iterator

from benchpool.cells.cell_changes import CellChanges


class RandomState:
    """Seeds, and the draws between a seed and a later cell that draws.

    A seed is included with the selection unless a later seed replaces it. Draws in between are
    included if they are plain and the cell draws too. Draws of a training are not, since it may
    take hours: they are collected in ``left_out`` for a warning. Cells that call an unknown
    function are collected in ``may_draw`` with its name.
    """

    def __init__(self, changes: CellChanges) -> None:
        self._effects = changes.effects
        self._seeds: dict[str, list[int]] = {}
        for number, effect in self._effects.items():
            for generator in effect.seeds:
                self._seeds.setdefault(generator, []).append(number)
        self.left_out: set[int] = set()
        self.may_draw: dict[int, str] = {}

    def needed(self, number: int, *, is_selected: bool) -> Iterator[tuple[int, str]]:
        """Yield the earlier cells that a cell's random numbers need, and why."""
        effect = self._effects.get(number)
        if effect is None:
            return
        drawn = effect.draws | effect.draws_when_made
        for generator in sorted(self._seeds.keys() - effect.seeds.keys()):
            seeds = self._seeds[generator]
            seed = max((each for each in seeds if each < number), default=None)
            if seed is None or not (is_selected or generator in drawn):
                continue
            if generator in drawn or not self._effects[seed].trains:
                call = self._effects[seed].seeds[generator]
                yield seed, f"sets `{call}` for later cells"
            if generator in drawn:
                yield from self._between(generator, seed, number)

    def _between(self, generator: str, seed: int, number: int) -> Iterator[tuple[int, str]]:
        for other in range(seed + 1, number):
            effect = self._effects.get(other)
            if effect is None:
                continue
            if generator in effect.draws and not effect.trains:
                yield other, "draws random numbers after the seed"
            elif generator in effect.draws | effect.draws_when_made:
                self.left_out.add(other)
            elif effect.asks_unknown is not None:
                self.may_draw[other] = effect.asks_unknown
