"""Dockerfiles: staged, on a configurable base image, pinned, and not run as root."""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

import grimp
import pytest

from benchpool_scheduler.workstation import proxy

ROOT = Path(__file__).resolve().parents[2]
LOCAL_ONLY = {"psutil"}
"""Packages that only the scheduler of a workstation loads."""
PARTS = ("hub", "proxy", "scheduler", "notebook", "job")


def steps(part: str) -> list[str]:
    """Return the instructions of a Dockerfile, with continued lines joined."""
    text = (ROOT / "images" / part / "Dockerfile").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("part", PARTS)
def test_every_stage_uses_one_base_image(part: str) -> None:
    bases = [line.split()[1] for line in steps(part) if line.startswith("FROM ")]
    assert bases == ["${BASE_IMAGE}", "${BASE_IMAGE}"]
    (given,) = [line for line in steps(part) if line.startswith("ARG BASE_IMAGE=")]
    assert re.fullmatch(r"ARG BASE_IMAGE=python:3\.\d+-slim-bookworm", given)


@pytest.mark.parametrize("part", PARTS)
def test_last_stage_installs_nothing_and_is_not_root(part: str) -> None:
    last = "\n".join(steps(part)).rpartition("FROM ${BASE_IMAGE}")[2]
    assert not re.search(r"\b(pip|apt-get|npm|curl|wget)\b", last)
    assert re.search(r"^USER 1000:(1000|100)$", last, re.MULTILINE)


@pytest.mark.parametrize("part", ["hub", "scheduler", "notebook"])
def test_every_requirement_is_pinned(part: str) -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].lower().replace("_", "-") for line in lines if "==" in line}
    wanted = (ROOT / "images" / part / "requirements.txt").read_text().splitlines()
    names = [line for line in wanted if line and not line.startswith("#")]
    assert names == sorted(names)
    assert not [name for name in names if name not in pinned]


def test_scheduler_image_has_each_package_that_the_scheduler_imports() -> None:
    graph = grimp.build_graph("benchpool_scheduler", include_external_packages=True, cache_dir=None)
    reached = graph.find_upstream_modules("benchpool_scheduler.app", as_package=True)
    roots = {name.partition(".")[0] for name in reached} - set(sys.stdlib_module_names)
    packages = metadata.packages_distributions()
    needed = {packages[root][0] for root in roots - {"benchpool_scheduler"} - LOCAL_ONLY}
    wanted = (ROOT / "images/scheduler/requirements.txt").read_text().splitlines()
    assert {canonical(name) for name in needed} <= {canonical(line) for line in wanted}


def canonical(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def test_proxy_packages_are_pinned_by_hash() -> None:
    lock = json.loads((ROOT / "images/proxy/package-lock.json").read_text())
    assert all("integrity" in one for path, one in lock["packages"].items() if path)
    assert all("resolved" not in one for one in lock["packages"].values())
    wanted = json.loads((ROOT / "images/proxy/package.json").read_text())["dependencies"]
    assert wanted == {proxy.PACKAGE: proxy.VERSION}
