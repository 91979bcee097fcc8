"""Each integration is a separate distribution that depends on the client of the pool only."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

from benchpool_scheduler import __version__
from benchpool_support import checkout

CLIENT = tuple(f"benchpool_scheduler.{room}" for room in ("client", "contract", "errors"))


@pytest.mark.parametrize("package", checkout.INTEGRATIONS, ids=lambda path: path.parent.name)
def test_integration_imports_only_client(package: Path) -> None:
    seen = set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                seen.add(node.module or "")
            elif isinstance(node, ast.Import):
                seen |= {alias.name for alias in node.names}
    ours = {name for name in seen if name.startswith("benchpool")}
    assert ours
    assert {name for name in ours if not name.startswith(CLIENT)} == set()


@pytest.mark.parametrize("package", checkout.INTEGRATIONS, ids=lambda path: path.parent.name)
def test_integration_has_pool_version_and_pinned_environment(
    package: Path,
) -> None:
    folder = package.parent
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
    # Its own code needs the client of its own release.
    assert f"benchpool>={__version__.rpartition('.')[0]}" in project["dependencies"]
    pinned = (folder / "constraints.txt").read_text().split()
    assert all("==" in each for each in pinned)


def test_every_integration_folder_is_registered() -> None:
    folders = {path.parent for path in (checkout.ROOT / "integrations").glob("*/pyproject.toml")}
    assert folders == {package.parent for package in checkout.INTEGRATIONS}


def test_integration_tests_run_in_one_make_target() -> None:
    recipe = (checkout.ROOT / "Makefile").read_text()
    assert "pytest integrations" in recipe
    assert recipe.count("pytest integrations") == 1
