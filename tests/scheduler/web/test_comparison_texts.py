"""Differences between two submissions as one sentence and as rows."""

from __future__ import annotations

from datetime import timedelta

from benchpool_scheduler.changes.code import SAME_CODE
from benchpool_scheduler.contract import (
    Attempt,
    CommandEntry,
    Job,
    JobDetail,
    JobSubmission,
    SentCell,
    SentCode,
    State,
)
from benchpool_scheduler.web.compare_view import Sent, compare
from benchpool_support.stage import NOW, job


def sent(one: Job, *cells: str, ran_min: int = 10, **asked: object) -> Sent:
    start = Attempt(1, NOW, NOW + timedelta(minutes=ran_min), 0, "exit", [], ["lab1"])
    submission = JobSubmission(CommandEntry(["run"]), **asked)  # type: ignore[arg-type]
    code = [SentCell(f"c{n}", n, "code", text) for n, text in enumerate(cells, start=1)]
    return Sent(JobDetail(one, [start]), submission, SentCode(one.id, "notebook", None, code))


BAD = job("resnet", State.FAILED, submitted=NOW, started=NOW + timedelta(minutes=3), exit_code=1)
GOOD = job("resnet again", State.SUCCEEDED, submitted=NOW, started=NOW, exit_code=0)


def test_differences_are_summarised_and_equal_fields_folded() -> None:
    first = sent(BAD, "lr = 0.1", gpus=1, env={"SEED": "1"}, ran_min=2)
    second = sent(GOOD, "lr = 0.01", gpus=4, env={"SEED": "2"}, ran_min=42)
    found = compare(first, second, NOW)
    assert found.answer == (
        "They were sent with different GPUs, variable SEED and 2 lines of code."
    )
    assert [(row.name, row.first, row.second) for row in found.differing] == [
        ("GPUs", "1", "4"),
        ("variable SEED", "1", "2"),
    ]
    assert not any(row.differs for row in found.same)
    outcome = {row.name: (row.first, row.second) for row in found.outcome}
    assert outcome["State"] == ("failed", "succeeded")
    assert outcome["Ran"] == ("2 min", "42 min")
    assert outcome["Waited for its first start"] == ("3 min", "0 s")
    lines = [(line.kind, line.text) for line in found.code]
    assert ("gone", "-lr = 0.1") in lines
    assert ("new", "+lr = 0.01") in lines


def test_identical_submissions_have_no_differences() -> None:
    found = compare(sent(BAD, "x"), sent(GOOD, "x"), NOW)
    assert found.answer == "They were sent with the same options and the same code."
    assert (found.differing, found.code, found.code_note) == ((), (), SAME_CODE)


def test_code_of_commands_is_reported_as_not_compared() -> None:
    code = SentCode(BAD.id, "command", None, [], command=["./run.sh"])
    detail, submission = JobDetail(BAD, []), JobSubmission(CommandEntry(["./run.sh"]))
    found = compare(Sent(detail, submission, code), Sent(detail, submission, code), NOW)
    assert found.code_note.startswith("The code of a command or module is not compared line")


def test_missing_code_is_not_reported_as_equal() -> None:
    gone = Sent(sent(GOOD).detail, sent(GOOD).submission, None)
    found = compare(sent(BAD, "x"), gone, NOW)
    assert found.answer == (
        "They were sent with the same options. The code of one of the runs is no longer kept."
    )
