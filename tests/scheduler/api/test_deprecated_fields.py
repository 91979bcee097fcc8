"""Answer fields that were renamed: both names are sent, and either is read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from benchpool_scheduler.api import openapi
from benchpool_scheduler.contract import Lease, ProjectQuota, ReclaimRequest
from benchpool_scheduler.contract.jobs import Progress
from benchpool_scheduler.contract.pool import HeldBuild

NOW = datetime(2026, 11, 28, tzinfo=UTC)
REQUEST = ReclaimRequest("root", NOW, "a course begins")
ANSWERS = [
    (Progress(0.5, None, NOW, previous_progress=0.75), "previous_progress", "fell_from"),
    (HeldBuild("", ["g"], reclaim_request=REQUEST), "reclaim_request", "asked_back"),
    (
        Lease("l", "a", "", "1", ["g"], NOW, reclaim_request=REQUEST),
        "reclaim_request",
        "asked_back",
    ),
    (ProjectQuota("a", 1, 1, 1, None, 0, reclaimed_gpus=3), "reclaimed_gpus", "gave_back"),
]


@pytest.mark.parametrize(("answer", "now", "before"), ANSWERS)
def test_both_names_are_sent(answer: Any, now: str, before: str) -> None:
    sent = msgspec.to_builtins(answer)
    assert sent[now] == sent[before]
    assert sent[now]


@pytest.mark.parametrize(("answer", "now", "before"), ANSWERS)
@pytest.mark.parametrize("name", ["now", "before"])
def test_either_name_is_read(answer: Any, now: str, before: str, name: str) -> None:
    sent = msgspec.to_builtins(answer)
    del sent[before if name == "now" else now]
    assert msgspec.convert(sent, type(answer)) == answer


@pytest.mark.parametrize(("answer", "now", "before"), ANSWERS)
def test_former_name_is_deprecated_in_the_document(answer: Any, now: str, before: str) -> None:
    fields = openapi.document()["components"]["schemas"][type(answer).__name__]["properties"]
    assert fields[before]["deprecated"] is True
    assert fields[before]["description"] == f"Use `{now}`."
    assert "deprecated" not in fields[now]
