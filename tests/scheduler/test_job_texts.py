"""Texts about jobs that lists, options, dialogs and documents share."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from benchpool_scheduler.cli import words
from benchpool_scheduler.contract import State
from benchpool_scheduler.contract.changes import JobChange
from benchpool_scheduler.contract.forms import fields
from benchpool_scheduler.contract.options import OPTIONS
from benchpool_scheduler.contract.scalars import PRIORITY_HELP
from benchpool_support.stage import NOW, job

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING, State.SUCCEEDED])
def test_job_age_is_time_since_submit(state: State) -> None:
    times = {"submitted": NOW - timedelta(hours=3, minutes=5)}
    if state is not State.QUEUED:
        times["started"] = NOW - timedelta(minutes=20)
    if state is State.SUCCEEDED:
        times["ended"] = NOW - timedelta(minutes=10)
    assert words.age(job("mine", state, **times), NOW) == "3 h 5 min"


def test_priority_text_is_equal_in_option_forms_and_docs() -> None:
    (option,) = (one for one in OPTIONS if one.field == "priority")
    (field,) = (one for one in fields(JobChange) if one.name == "priority")
    assert option.help == field.help == PRIORITY_HELP
    generated = REPOSITORY / "extension/src/generated/actions.ts"
    assert json.dumps(PRIORITY_HELP) in generated.read_text()
    for page in ("cli.md", "resources.md"):
        assert PRIORITY_HELP in (REPOSITORY / "docs/reference" / page).read_text()
    others = (REPOSITORY / "docs/reference/resources.md").read_text()
    assert not re.search(r"larger goes first", others)
