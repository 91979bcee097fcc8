"""The Python files of this checkout, for tests that examine the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PRODUCT = (
    ROOT / "scheduler" / "benchpool_scheduler",
    ROOT / "spawner" / "benchpool_spawner",
    ROOT / "extension" / "benchpool",
)
INTEGRATIONS = (
    ROOT / "integrations" / "airflow" / "airflow_provider_benchpool",
    ROOT / "integrations" / "dagster" / "dagster_benchpool",
    ROOT / "integrations" / "prefect" / "prefect_benchpool",
)
"""Folders of the integrations: separate distributions that depend on the client."""
FOR_TESTS = (
    ROOT / "tests" / "cluster" / "benchpool_cluster",
    ROOT / "tests" / "support" / "benchpool_support",
)


@dataclass(frozen=True, slots=True)
class Module:
    """Module of one of our packages: its dotted name and its file."""

    name: str
    path: Path


def modules(*packages: Path) -> list[Module]:
    """Return the modules of these packages, or of all packages by default, sorted by name."""
    return sorted(
        (
            Module(_dotted(path.relative_to(package.parent)), path)
            for package in packages or PRODUCT + INTEGRATIONS + FOR_TESTS
            for path in package.rglob("*.py")
            if path.name != "__main__.py"
        ),
        key=lambda module: module.name,
    )


def test_files() -> Iterator[Path]:
    """Yield every Python file of the tests that belongs to none of our packages."""
    every = (*(ROOT / "tests").rglob("*.py"), *(ROOT / "integrations").glob("*/tests/**/*.py"))
    for path in sorted(every):
        if not any(path.is_relative_to(package) for package in FOR_TESTS):
            yield path


def relative(path: Path) -> str:
    """Return a path relative to the root of the checkout.

    >>> relative(ROOT / "docs" / "conf.py")
    'docs/conf.py'
    """
    return path.relative_to(ROOT).as_posix()


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
