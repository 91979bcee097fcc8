"""The core is a few rooms on a few floors: packages and modules that stand directly in ``core``.

A room may import rooms on floors below its own. The bounds are what a newcomer can keep in mind.
"""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

import grimp
import pytest

CORE = "benchpool_scheduler.core"

MOST_ROOMS = 15
MOST_FLOORS = 9
MOST_ARROWS = 60

Arrows = Mapping[str, frozenset[str]]
"""For every room those that it imports."""


@pytest.fixture(scope="module")
def arrows() -> Arrows:
    graph = grimp.build_graph("benchpool_scheduler", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules:
        if (room := _room(module)) is not None:
            used = map(_room, graph.find_modules_directly_imported_by(module))
            found.setdefault(room, set()).update(it for it in used if it not in (None, room))
    return {room: frozenset(used) for room, used in found.items()}


def _room(module: str) -> str | None:
    return module.split(".")[2] if module.startswith(f"{CORE}.") else None


def _floors(arrows: Arrows) -> dict[str, int]:
    """Return the floor of every room, from 1; a circle raises ``graphlib.CycleError``."""
    floors: dict[str, int] = {}
    for room in TopologicalSorter(arrows).static_order():
        floors[room] = 1 + max((floors[used] for used in arrows[room]), default=0)
    return floors


def test_the_core_has_few_rooms(arrows: Arrows) -> None:
    assert 5 <= len(arrows) <= MOST_ROOMS, sorted(arrows)


def test_no_room_imports_one_above_it_and_the_floors_are_few(arrows: Arrows) -> None:
    floors = _floors(arrows)
    assert max(floors.values()) <= MOST_FLOORS, floors


def test_there_are_few_arrows_between_rooms(arrows: Arrows) -> None:
    found = [(room, used) for room, all_used in arrows.items() for used in all_used]
    assert len(found) <= MOST_ARROWS, sorted(found)


def test_every_room_says_what_it_is_for() -> None:
    graph = grimp.build_graph("benchpool_scheduler", cache_dir=None)
    rooms = [CORE, *sorted(graph.find_children(CORE))]
    for name in rooms:
        assert __import__(name, fromlist=["_"]).__doc__, f"{name} has no docstring"
