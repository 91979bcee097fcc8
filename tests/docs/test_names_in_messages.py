"""Names in the messages of the product exist: commands, options, variables, keys and pages.

The messages are all texts of the source: refusals, reasons, notices, findings and help.
"""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from jupyterhub._data import DATA_FILES_PATH

from benchpool_scheduler.configuration import loader
from benchpool_scheduler.contract.sweeps import TASK, ListedValues, SweepPlan
from benchpool_scheduler.sweeps.arrays import variables
from benchpool_support import checkout
from benchpool_support.sentences import commands, options, parse, sentences

OF_OTHERS = {
    "--help": "click",
    **dict.fromkeys(("--nofile", "--pid"), "prlimit"),
    "--inodes": "du",
    "--now": "systemctl",
    "--ignore-scripts": "npm",
    **dict.fromkeys(("--jp-content-link-color", "--jp-border-color"), "the styles of JupyterLab"),
}
"""Options of other programs, with the program."""
HINTS = "benchpool_scheduler.workstation.hints:"
"""Module that builds commands from its callers' words; the examples of its docstrings are read."""
SCREENS = checkout.ROOT / "scheduler" / "benchpool_scheduler" / "web" / "templates"
HUB = Path(DATA_FILES_PATH) / "templates"
CHART = checkout.ROOT / "helm" / "benchpool"


def test_every_named_command_is_parsed() -> None:
    wrong, named = [], [(one, words) for one in sentences() for words in commands(one.text)]
    for one, words in named:
        if one.shown and one.place.startswith(HINTS):
            continue
        try:
            parse(words)
        except click.UsageError as refused:
            wrong.append(f"{one.place}: {' '.join(words)}: {refused.message}")
    assert wrong == []
    assert len(named) > 100


@pytest.mark.parametrize(
    "words", [["no-such"], ["jobs", "--no-such"], ["people", "1"], ["node", "no-such", "n"]]
)
def test_missing_command_is_detected(words: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(words)


def test_every_named_option_exists() -> None:
    found = _named(r"(?<![\w-])(--[a-z][a-z-]*[a-z])")
    assert len(found) > 30
    assert found - options() - OF_OTHERS.keys() == set()


def test_every_named_variable_is_read_or_set() -> None:
    """A variable that is read or set appears alone between quotation marks."""
    source = "\n".join(
        path.read_text("utf-8")
        for package in (*checkout.PRODUCT, checkout.ROOT / "hub_config")
        for path in package.rglob("*.py")
    )
    known = set(re.findall(r"""["'](BENCHPOOL_[A-Z_]+)["']""", source))
    found = _named(r"\b(BENCHPOOL_[A-Z_]*[A-Z])\b(?!_)")
    assert len(found) > 10
    tasks = variables("array", SweepPlan({TASK: ListedValues([1])}, array=True), {TASK: 1})
    assert found - known - tasks.keys() == set()


def test_every_named_configuration_key_exists() -> None:
    sections = "|".join(loader.SECTIONS)
    found = _named(rf"(?<![\w./'])((?:{sections})\.(?!yaml)[a-z_.]*[a-z])")
    assert len(found) > 8
    assert {key for key in found if not loader.KEYS.issuperset(_words(key))} == set()


def test_every_named_chart_value_exists() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    found = _named(r"chart's (?:value )?`?([\w.]*\w)") | _named(r"([\w.]+) of the chart\b")
    assert len(found) > 2
    assert {name for name in found if not _has(values, name)} == set()


def test_every_named_page_is_in_navigation() -> None:
    ours, hubs = (SCREENS / "base.html").read_text("utf-8"), (HUB / "page.html").read_text("utf-8")
    navigation = {*re.findall(r">([A-Z][\w ]+)</a>", ours), *re.findall(r">\s*(\w+)\s*</a>", hubs)}
    found = _named(r"\b[Pp]age \*?([A-Z]\w+(?: [A-Z]\w+)?)")
    assert len(found) > 3
    assert found - navigation == set()


def _named(pattern: str) -> set[str]:
    """Return the matches of a pattern in the sentences shown to users."""
    return {name for one in sentences() if one.shown for name in re.findall(pattern, one.text)}


def _words(key: str) -> set[str]:
    """Return the words of a key without the names of users and projects.

    >>> sorted(_words("build.users.susan"))
    ['build', 'users']
    """
    return set(re.sub(r"(?<=users\.|jects\.)\w+\.?", "", key).strip(".").split("."))


def _has(values: Any, name: str) -> bool:
    return reduce(lambda at, key: (at or {}).get(key), name.split("."), values) is not None
