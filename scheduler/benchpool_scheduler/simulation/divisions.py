"""Check the division into fair shares alone (formats, section 1; R4, R5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.core.fairness.shares import Demand, divide
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation import documents
from benchpool_scheduler.simulation.documents import Mapped

DIVISION_KEYS = ("name", "total", "projects", "shares", "rest")
CLAIM_KEYS = ("name", "quota", "weight", "limit", "priority", "demand")


@dataclass(frozen=True, slots=True)
class Division:
    """One division and its expected result."""

    name: str
    total: int
    names: tuple[str, ...]
    siblings: tuple[Demand, ...]
    shares: Mapping[str, int]
    rest: int | None


@dataclass(frozen=True, slots=True)
class Divided:
    """Result of a division."""

    name: str
    result: str
    shares: Mapping[str, int]
    rest: int
    differences: tuple[str, ...]


def load(path: Path) -> list[Division]:
    """Return the divisions of a file.

    Raises:
        InvalidInput: The file cannot be used.
    """
    found: list[Division] = []
    for document in documents.load(path):
        if not isinstance(document, list):
            raise InvalidInput(f"{path} must be a list of divisions")
        found += [_division(entry, path) for entry in document]
    return found


def _division(value: object, path: Path) -> Division:
    entry = Mapped.of(value, str(path), DIVISION_KEYS)
    name = entry.text("name")
    where = f"{path}, division {name}"
    projects = [Mapped.of(p, f"{where}, a project", CLAIM_KEYS) for p in entry.items("projects")]
    names = tuple(project.text("name") for project in projects)
    shares = Mapped.of(entry.values.get("shares", {}), f"{where}, shares", names)
    return Division(
        name=name,
        total=Mapped(entry.values, where).whole("total", 0),
        names=names,
        siblings=tuple(_demand(project) for project in projects),
        shares={key: shares.whole(key, 0) for key in shares.values},
        rest=entry.maybe_whole("rest"),
    )


def _demand(project: Mapped) -> Demand:
    quota = None if project.values.get("quota") == "unlimited" else project.whole("quota", 0)
    weight = project.maybe("weight")
    return Demand(
        quota=quota,
        limit=project.maybe_whole("limit"),
        weight=float(1 if quota is None else quota) if weight is None else weight,
        priority=int(project.number("priority", 0)),
        demand=project.whole("demand", 0),
    )


def check(division: Division) -> Divided:
    """Run the division and compare its result with the expectation."""
    amounts, rest = divide(division.total, division.siblings)
    shares = dict(zip(division.names, amounts, strict=True))
    differences = [
        f"{name} gets {shares[name]}, not {wanted}"
        for name, wanted in division.shares.items()
        if shares[name] != wanted
    ]
    if division.rest is not None and rest != division.rest:
        differences.append(f"{rest} are left, not {division.rest}")
    result = "FAIL" if differences else "ok"
    return Divided(division.name, result, shares, rest, tuple(differences))
