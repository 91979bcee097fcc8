"""What-if questions over HTTP, asked of a service with real jobs; they change nothing."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    JobWhatIf,
    State,
    WhatIf,
    WhatIfQuestion,
)
from benchpool_scheduler.core.whatif import whatif
from benchpool_scheduler.errors import Forbidden, InvalidInput, TooMany
from benchpool_support import direct
from benchpool_support.serving import CONFIGURATION, Served

pytestmark = pytest.mark.slow

SWAPPED = CONFIGURATION.replace("vision, quota: 2", "vision, quota: 0").replace(
    "speech, quota: 2", "speech, quota: 4"
)


def sleeper(name: str, project: str, gpus: int) -> JobSubmission:
    entry = CommandEntry([sys.executable, "-c", "import time; time.sleep(600)"])
    return JobSubmission(entry=entry, name=name, project=project, gpus=gpus)


@pytest.fixture
def borrowed(service: Served) -> Served:
    """Susan runs on three of the four pool GPUs, two of them guaranteed; joe waits for four."""
    with service.client("susan") as susan, service.client("joe") as joe:
        runs = susan.submit(sleeper("runs", "vision", 3))
        for event in susan.events():
            if susan.job(runs.id).job.state is State.RUNNING:
                break
            assert event
        waits = joe.submit(sleeper("waits", "speech", 4))
        for event in joe.events():
            reason = joe.why(waits.id).reason
            if reason is not None and reason.code != "next-pass":
                break
            assert event
    return service


def ask(service: Served, **question: object) -> WhatIf:
    with service.client("root") as root:
        return root.whatif(WhatIfQuestion(**question))  # type: ignore[arg-type]


def named(answer: WhatIf, name: str) -> JobWhatIf:
    return next(job for job in answer.jobs if job.name == name)


def test_changed_configuration_shows_starts_and_preemptions(borrowed: Served) -> None:
    answer = ask(borrowed, config=SWAPPED)
    runs, waits = named(answer, "runs"), named(answer, "waits")
    assert (waits.before.state, waits.after.state) == ("waits", "runs")
    assert waits.before.reason is not None
    assert (runs.after.state, runs.after.preempted, runs.user) == ("waits", True, "susan")
    assert runs.after.lost_gpu_s >= 3 * 60
    assert answer.text.startswith("Now 1 waiting job would run and 1 job would be paused")
    assert [(it.name, it.before and it.before.fair_share, it.after and it.after.fair_share)
            for it in answer.projects] == [("vision", 2, 0), ("speech", 2, 4)]  # fmt: skip
    assert "guaranteed quota 2 → 0" in answer.changes[0]


def test_what_if_changes_nothing(borrowed: Served) -> None:
    ask(borrowed, config=SWAPPED, more_gpus=4)
    with borrowed.client("root") as root:
        assert [job.state for job in root.jobs(all_=True)] == [State.QUEUED, State.RUNNING]
        assert [it.quota for it in root.status().projects] == [2, 2]


def test_added_gpus_start_jobs_without_preemption(borrowed: Served) -> None:
    answer = ask(borrowed, more_gpus=4)
    assert (answer.before.gpus, answer.after.gpus) == (4, 8)
    assert (answer.before.allocated, answer.after.allocated) == (3, 7)
    assert [(job.name, job.after.state) for job in answer.jobs] == [("waits", "runs")]
    assert answer.text == (
        "Now 1 waiting job would run; jobs would hold 7 of 8 GPUs instead of 3 of 4."
    )


def test_added_small_nodes_do_not_fit_large_worker(borrowed: Served) -> None:
    assert ask(borrowed, more_gpus=4, gpus_per_node=2).jobs == []


def test_question_without_difference_is_rejected(service: Served) -> None:
    with pytest.raises(InvalidInput, match="Nothing to compare"):
        ask(service)


def test_invalid_configuration_is_rejected_with_line_number(service: Served) -> None:
    with pytest.raises(InvalidInput, match=r"line 2: build\.defualt is not a known key"):
        ask(service, config="version: 1\nbuild: {defualt: 1}")


def test_what_if_requires_administrator(service: Served) -> None:
    with service.client("jemma") as jemma, pytest.raises(Forbidden):
        jemma.whatif(WhatIfQuestion(more_gpus=1))


def test_unknown_key_suggests_nearest_key(service: Served) -> None:
    answer = direct.post(
        f"{service.url}/api/v1/whatif",
        json={"more_gpu": 1},
        headers={"Authorization": "token root"},
    )
    assert answer.status_code == 422
    assert "the nearest one is more_gpus" in answer.json()["error"]["message"]


def test_service_answers_during_what_if(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, resume = threading.Event(), threading.Event()
    compare = whatif.compare

    def held_up(*pools: object) -> whatif.Comparison:
        begun.set()
        assert resume.wait(120)
        return compare(*pools)  # type: ignore[arg-type]

    monkeypatch.setattr(whatif, "compare", held_up)
    asked = asyncio.run_coroutine_threadsafe(
        service.pool.whatifs.ask(service.identity.people["root"], WhatIfQuestion(more_gpus=1)),
        service.loop,
    )
    try:
        assert begun.wait(120)
        with service.client("root") as root:
            assert root.status().health.ok
            with pytest.raises(TooMany, match="only one runs at a time"):
                root.whatif(WhatIfQuestion(more_gpus=1))
    finally:
        resume.set()
    assert asked.result(120).after.gpus == 5


def test_recorded_history_is_replayed_on_both_sides(service: Served) -> None:
    with service.client("joe") as joe:
        for _ in range(2):
            entry = CommandEntry([sys.executable, "-c", "pass"])
            joe.wait(joe.submit(JobSubmission(entry=entry, project="speech", gpus=4)).id)
    found = ask(service, more_gpus=4, history_days=1).history
    assert found is not None
    assert (found.jobs, found.left_out) == (2, 0)
    assert (found.before.gpus, found.after.gpus) == (4, 8)
    assert found.after.allocated_utilisation < found.before.allocated_utilisation
    (speech,) = found.projects
    assert (speech.name, speech.jobs) == ("speech", 2)
    assert speech.gpu_h > 0
    assert found.text.startswith("Over 2 recorded jobs the mean wait would be 0 s instead of")


def test_history_without_jobs_is_rejected(service: Served) -> None:
    with pytest.raises(InvalidInput, match="No job ran and ended in the last 3 days"):
        ask(service, more_gpus=4, history_days=3)


def test_jobs_impossible_on_other_side_are_left_out(service: Served) -> None:
    with service.client("joe") as joe, service.client("susan") as susan:
        entry = CommandEntry([sys.executable, "-c", "pass"])
        joe.wait(joe.submit(JobSubmission(entry=entry, project="speech", gpus=4)).id)
        susan.wait(susan.submit(JobSubmission(entry=entry, project="vision", gpus=1)).id)
    capped = CONFIGURATION.replace("speech, quota: 2", "speech, quota: 2, limit: 3")
    found = ask(service, config=capped, history_days=1).history
    assert found is not None
    assert (found.jobs, found.left_out) == (1, 1)


def test_unneeded_bench_gpus_go_to_pool(borrowed: Served) -> None:
    answer = ask(borrowed, config=CONFIGURATION.replace("{susan: 1}", "{}"))
    assert (answer.before.gpus, answer.after.gpus) == (4, 5)
    more = CONFIGURATION.replace("{susan: 1}", "{susan: 3}")
    answer = ask(borrowed, config=more)
    assert (answer.after.gpus, answer.after.allocated) == (2, 0)
    assert named(answer, "runs").after.preempted


def test_jobs_of_removed_project_are_preempted_and_queued(
    borrowed: Served,
) -> None:
    text = CONFIGURATION.replace(
        "  - {name: vision, quota: 2, members: [susan], leads: [jemma]}\n", ""
    )
    answer = ask(borrowed, config=text)
    assert named(answer, "runs").after.preempted
    gone = next(project for project in answer.projects if project.name == "vision")
    assert gone.after is not None
    assert (gone.after.quota, gone.after.limit, gone.after.waiting) == (0, 0, 1)
    assert "1 of its jobs have not ended" in answer.warnings[0]


def test_jobs_of_divided_project_are_followed(borrowed: Served) -> None:
    text = CONFIGURATION.replace(
        "policy:", "  - {name: children, parent: vision, quota: 2}\npolicy:"
    )
    answer = ask(borrowed, config=text)
    assert named(answer, "runs").after.preempted
    assert {it.name for it in answer.projects} == {
        "vision", "speech", "children", "vision (before it was divided)",
    }  # fmt: skip
