"""Commands that were renamed: the former names run and print a warning."""

from __future__ import annotations

import pytest

from benchpool_scheduler.cli.commands import VERBS
from benchpool_scheduler.cli.verb import Verb
from benchpool_support.sentences import parse

from .conftest import Benchpool

RENAMED = [verb for verb in VERBS if verb.replaces]


def test_former_commands_are_known() -> None:
    assert {verb.replaces: verb.path for verb in RENAMED} == {
        ("ask-back",): ("bench", "reclaim"),
        ("line",): ("bench", "queue"),
        ("node", "open"): ("node", "uncordon"),
        ("node", "window"): ("node", "maintenance"),
        ("code",): ("source",),
    }


@pytest.mark.parametrize("verb", RENAMED, ids=lambda verb: " ".join(verb.replaces))
def test_former_command_takes_the_same_options(verb: Verb) -> None:
    for path in (verb.replaces, verb.path):
        parse([*path])


@pytest.mark.parametrize("words", [["line"], ["bench", "queue"]], ids=["former", "present"])
def test_former_command_runs_with_warning(benchpool: Benchpool, words: list[str]) -> None:
    answer = benchpool(*words, "--json")
    assert (answer.status, answer.json) == (0, [])
    assert ("Use `benchpool bench queue`." in answer.err) == (words == ["line"])


def test_help_lists_present_names_only(benchpool: Benchpool) -> None:
    listed = {line.split()[0] for line in benchpool("--help").out.splitlines() if line.strip()}
    assert {"source", "bench"} <= listed
    assert listed.isdisjoint({"ask-back", "line", "code"})


def test_shape_alone_runs_the_timing(benchpool: Benchpool) -> None:
    for words in (["bench", "fill"], ["bench", "time", "fill"]):
        assert benchpool(*words, "--nodes", "3", "--json").json["nodes"] == 3
