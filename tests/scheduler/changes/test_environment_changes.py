"""Changes between the environments of two runs."""

from __future__ import annotations

import random

from msgspec.structs import replace

from benchpool_scheduler.changes.environments import environment_changes
from benchpool_scheduler.contract.run_environment import (
    Commit,
    KnownFile,
    Package,
    RunEnvironment,
    Seed,
)

RUN = RunEnvironment(
    job="a",
    attempt=1,
    python="CPython 3.11.7",
    platform="Linux-6",
    packages=[
        Package("torch", "2.6.0"),
        Package("my_lib", "0.1", "https://host/lib@abc"),
        Package("Pillow", "11.0"),
    ],
    driver="550.54",
    cuda="12.4",
    image=None,
    commit=Commit("c" * 40, "main", ""),
    modules=[
        KnownFile("helper.py", 3, "1" * 64),
        KnownFile("q/m.py", 3, "2" * 64),
    ],
    data=[KnownFile("train.csv", 10, "3" * 64)],
    seeds=[Seed(1, "random.seed", "1"), Seed(2, "random.seed", "2")],
    variables=["HOME", "SEED", "BENCHPOOL_JOB_ID"],
)


def changes_to(other: RunEnvironment) -> list[tuple[str, str, str | None, str | None]]:
    return [(it.area, it.name, it.before, it.after) for it in environment_changes(RUN, other)]


def test_identical_run_has_no_changes() -> None:
    packages = list(RUN.packages)
    random.Random(1).shuffle(packages)
    again = replace(RUN, job="b", attempt=3, packages=packages)
    assert changes_to(again) == []
    assert changes_to(replace(RUN, variables=["HOME", "SEED", "BENCHPOOL_ATTEMPT"])) == []


def test_changed_area_shows_both_sides() -> None:
    other = replace(
        RUN,
        python="CPython 3.12.1",
        driver=None,
        image="lab@sha256:1",
        packages=[Package("torch", "2.7.0"), Package("my-lib", "0.1"), Package("pillow", "11.0")],
        commit=Commit("d" * 40, "main", "+a\n-b\n"),
        modules=[KnownFile("helper.py", 3, "9" * 64), RUN.modules[1]],
        data=[],
        seeds=[RUN.seeds[0], Seed(2, "random.seed", "7")],
        variables=["HOME"],
    )
    assert changes_to(other) == [
        ("environment", "python", "CPython 3.11.7", "CPython 3.12.1"),
        ("environment", "driver", "550.54", None),
        ("environment", "image", None, "lab@sha256:1"),
        ("package", "my-lib", "0.1 from https://host/lib@abc", "0.1"),
        ("package", "torch", "2.6.0", "2.7.0"),
        ("commit", "commit", "c" * 12, "d" * 12),
        ("commit", "uncommitted changes", "none", "2 lines"),
        ("module", "helper.py", "1" * 12, "9" * 12),
        ("data", "train.csv", "3" * 12, None),
        ("seed", "random.seed #2", "2", "7"),
        ("variable", "SEED", "set", None),
    ]


def test_reverse_comparison_swaps_sides() -> None:
    other = replace(RUN, python="CPython 3.13.0", packages=[], seeds=[], commit=None)
    there = environment_changes(RUN, other)
    back = environment_changes(other, RUN)
    assert [replace(it, before=it.after, after=it.before) for it in back] == there
