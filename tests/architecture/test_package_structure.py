"""Core and service consist of a few rooms on a few floors. A room is a direct part of a package.

A room may import only rooms on lower floors. The bounds keep the structure easy to learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter

import grimp
import pytest


@dataclass(frozen=True)
class House:
    """Package of rooms, with its maximum number of rooms, floors and arrows."""

    package: str
    rooms: int
    floors: int = 9
    arrows: int = 60


HOUSES = (House("benchpool_scheduler.core", 15), House("benchpool_scheduler.service", 13))

Arrows = Mapping[str, frozenset[str]]
"""Imported rooms of each room."""


@cache
def _graph() -> grimp.ImportGraph:
    return grimp.build_graph("benchpool_scheduler", cache_dir=None)


@cache
def _arrows(package: str) -> Arrows:
    def room(module: str) -> str | None:
        inside = module.removeprefix(f"{package}.")
        return inside.split(".")[0] if inside != module else None

    found: dict[str, set[str]] = {}
    for module in _graph().modules:
        if (own := room(module)) is not None:
            used = map(room, _graph().find_modules_directly_imported_by(module))
            found.setdefault(own, set()).update(it for it in used if it not in (None, own))
    return {own: frozenset(used) for own, used in found.items()}


def _floors(arrows: Arrows) -> dict[str, int]:
    """Return the floor of every room, from 1.

    Raises:
        graphlib.CycleError: The rooms import each other in a cycle.
    """
    floors: dict[str, int] = {}
    for room in TopologicalSorter(arrows).static_order():
        floors[room] = 1 + max((floors[used] for used in arrows[room]), default=0)
    return floors


@pytest.fixture(params=HOUSES, ids=lambda house: house.package)
def house(request: pytest.FixtureRequest) -> House:
    chosen: House = request.param
    return chosen


def test_rooms_are_few(house: House) -> None:
    rooms = _arrows(house.package)
    assert 5 <= len(rooms) <= house.rooms, sorted(rooms)


def test_rooms_import_downward_across_few_floors(house: House) -> None:
    floors = _floors(_arrows(house.package))
    assert max(floors.values()) <= house.floors, floors


def test_room_dependencies_are_few(house: House) -> None:
    found = [(room, used) for room, all_used in _arrows(house.package).items() for used in all_used]
    assert len(found) <= house.arrows, sorted(found)


def test_every_room_has_docstring(house: House) -> None:
    for name in [house.package, *sorted(_graph().find_children(house.package))]:
        assert __import__(name, fromlist=["_"]).__doc__, f"{name} has no docstring"
