"""Texts and rows of the pages, built from contract objects."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract import (
    Attempt,
    Container,
    EstimatedStart,
    GpuState,
    InLine,
    JobDetail,
    Lease,
    LinePlace,
    Preemption,
    Progress,
    ProjectQuota,
    Reason,
    State,
)
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web import words
from benchpool_scheduler.web.benches_view import benches_view, line_view
from benchpool_scheduler.web.job_rows import ENDED_SHOWN, Reader, actions, jobs_view
from benchpool_scheduler.web.job_view import job_view
from benchpool_scheduler.web.log_text import plain, tail
from benchpool_scheduler.web.pool_view import gpu_places, pool_view
from benchpool_scheduler.web.projects_view import projects_view
from benchpool_support.stage import NOW, StagedPool, gpu, job, reason

SUSAN = Reader("susan", admin=False)
ADA = Reader("ada", admin=True)
ADMIN = Caller("ada", admin=True)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


# --------------------------------------------------------------------------- pool


def test_gpus_are_squares_on_nodes_ordered_by_index() -> None:
    staged = StagedPool(gpus=[gpu(1, node="b"), gpu(0, node="b"), gpu(0, node="a")])
    view = pool_view(staged.status(ADMIN), {}, NOW)
    assert [(node.name, [one.index for one in node.squares]) for node in view.nodes] == [
        ("a", [0]),
        ("b", [0, 1]),
    ]


def test_gpu_states_have_distinct_words_letters_and_shapes() -> None:
    assert set(words.GPU_WORDS) == set(GpuState)
    shown = [*words.GPU_WORDS.values(), words.IDLE]
    for kind in ("word", "letter", "style"):
        assert len({getattr(one, kind) for one in shown}) == len(GpuState) + 1


def test_idle_bench_has_own_square_and_legend_adds_up() -> None:
    held: dict[str, Any] = {"state": GpuState.BUILD_HELD, "user": "joe", "server": "paper"}
    gpus = [gpu(0, **held), gpu(1, idle_since=NOW - minutes(180), **held), gpu(2)]
    view = pool_view(StagedPool(gpus=gpus).status(ADMIN), {}, NOW)
    squares = view.nodes[0].squares
    assert [one.word.word for one in squares] == ["bench, held", "bench, idle", "free"]
    assert (
        squares[1].label == "GPU 1 · A100 · bench, idle · joe: server “paper” · last seen 3 h ago"
    )
    assert {it.word.word: it.gpus for it in view.legend if it.gpus} == {
        "bench, held": 1,
        "bench, idle": 1,
        "free": 1,
    }


def test_nodes_of_one_rack_are_adjacent() -> None:
    staged = StagedPool(gpus=[gpu(0, node=name) for name in ("a", "b", "c", "d")])
    racks = {"a": "r2", "b": "r1", "c": "r2"}
    view = pool_view(staged.status(ADMIN), {}, NOW, racks)
    assert [(one.rack, one.name) for one in view.nodes] == [
        ("", "d"), ("r1", "b"), ("r2", "a"), ("r2", "c"),
    ]  # fmt: skip


def test_square_names_holder_only_to_permitted_reader() -> None:
    mine = job("mine", State.RUNNING)
    staged = StagedPool(
        gpus=[
            gpu(0, GpuState.TRAIN_WITHIN_QUOTA, user="susan", job=mine.id),
            gpu(1, GpuState.BUILD_HELD, user="joe", server="paper"),
        ]
    )
    own = pool_view(staged.status(Caller("susan")), {mine.id: mine}, NOW).nodes[0].squares
    assert own[0].label == "GPU 0 · A100 · train, within quota · susan: mine"
    assert own[1].label == "GPU 1 · A100 · bench, held"
    everything = pool_view(staged.status(ADMIN), {}, NOW).nodes[0].squares
    assert everything[1].label == "GPU 1 · A100 · bench, held · joe: server “paper”"


def test_gpu_places_are_given_by_node_and_index() -> None:
    gpus = [gpu(3), gpu(0), gpu(1, node="lab2")]
    assert gpu_places(gpus) == "lab1: 0, 3; lab2: 1"
    assert gpu_places(gpus, ["GPU-sim-lab1-3", "GPU-gone"]) == "lab1: 3; GPU-gone"


# --------------------------------------------------------------------------- jobs


def test_queue_is_sorted_with_position_in_project() -> None:
    old = job("old", submitted=NOW - minutes(9))
    new = job("new", submitted=NOW - minutes(1))
    urgent = job("urgent", submitted=NOW, priority=90)
    other = job("other", project="joe", user="joe", submitted=NOW - minutes(5))
    rows = jobs_view([new, old, urgent, other], {}, [], ADA, NOW).waiting
    assert [(row.job.name, row.position) for row in rows] == [
        ("urgent", "1st of 3"),
        ("old", "2nd of 3"),
        ("other", "only one"),
        ("new", "3rd of 3"),
    ]


def test_position_among_visible_jobs_is_marked() -> None:
    rows = jobs_view([job("a"), job("b")], {}, [], SUSAN, NOW).waiting
    assert [row.position for row in rows] == ["1st of 2 you see", "2nd of 2 you see"]


def test_jobs_are_grouped_by_state_with_recent_ended_jobs() -> None:
    ended = [
        job(f"e{number}", State.SUCCEEDED, ended=NOW - minutes(number)) for number in range(30)
    ]
    jobs = [job("r", State.RUNNING), job("s", State.STARTING), job("z", State.PAUSED), *ended]
    view = jobs_view(jobs, {}, [], SUSAN, NOW)
    assert {row.job.name for row in view.running} == {"r", "s"}
    assert [row.job.name for row in view.paused] == ["z"]
    assert [row.job.name for row in view.ended] == [f"e{n}" for n in range(ENDED_SHOWN)]


def test_waiting_job_shows_reason_and_remedy() -> None:
    row = jobs_view(
        [job("w", reason=reason("Waits for 2 GPUs: 1 free.", "Ask for 1."))], {}, [], SUSAN, NOW
    )
    assert (row.waiting[0].reason, row.waiting[0].remedy) == (
        "Waits for 2 GPUs: 1 free.",
        "Ask for 1.",
    )


@pytest.mark.parametrize(
    ("state", "verbs"),
    [
        (State.QUEUED, ["pause", "cancel"]),
        (State.STARTING, ["pause", "cancel"]),
        (State.RUNNING, ["pause", "cancel"]),
        (State.PAUSING, ["pause", "cancel"]),
        (State.PAUSED, ["resume", "cancel"]),
        (State.SUCCEEDED, []),
        (State.FAILED, []),
        (State.CANCELLED, []),
    ],
)
def test_job_actions_depend_on_state(state: State, verbs: list[str]) -> None:
    assert [action.verb for action in actions(job("j", state), SUSAN, "")] == verbs


def test_cancel_confirmation_appears_only_for_lost_work() -> None:
    waits = actions(job("w"), SUSAN, "")[-1]
    runs = actions(job("r", State.RUNNING, gpus=4), SUSAN, "12 min")[-1]
    assert waits.confirm == ""
    assert runs.confirm.startswith("It has run 12 min on 4 GPUs;")


def test_actions_on_foreign_jobs_require_reason() -> None:
    theirs = job("theirs", State.RUNNING, user="joe")
    assert all(action.asks_reason for action in actions(theirs, ADA, "1 min"))
    assert not any(action.asks_reason for action in actions(theirs, Reader("joe", False), "1 min"))


def test_only_job_holding_gpus_is_within_quota() -> None:
    """A preempted job that waits again holds no GPUs."""

    def quota_of(state: State) -> str:
        one = job("j", state, started=NOW - minutes(90), gpus=4)
        facts = job_view(JobDetail(one, []), [], SUSAN, NOW).facts
        return next(fact.text for fact in facts if fact.name == "Quota")

    assert quota_of(State.RUNNING) == "within quota"
    waits = "preemptible: may be paused for others while it is over quota"
    assert quota_of(State.QUEUED) == quota_of(State.SUCCEEDED) == waits


def test_job_page_lists_attempts_and_pause_costs() -> None:
    one = job(
        "j",
        State.RUNNING,
        attempt=2,
        progress=Progress(1.7, "epoch 3", NOW),
    )
    pause = Preemption(
        *(NOW - minutes(60), "joe: bert", "R15", 1460.0, NOW - minutes(42)),
        cost="24 min of one GPU (estimate)",
    )
    attempts = [
        Attempt(
            1, NOW - minutes(90), NOW - minutes(60), 143, "notice", ["GPU-sim-lab1-0"], ["lab1"]
        ),
        Attempt(2, NOW - minutes(42), None, None, None, ["GPU-sim-lab1-0"], ["lab1"]),
    ]
    detail = JobDetail(one, attempts, pauses=[pause])
    view = job_view(detail, [gpu(0)], SUSAN, NOW)
    assert [(row.number, row.ran, row.end, row.places) for row in view.attempts] == [
        (2, "42 min", "running", "lab1: 0"),
        (1, "30 min", "stopped after a notice, exit code 143", "lab1: 0"),
    ]
    assert [(row.why, row.cost) for row in view.pauses] == [
        ("for joe: bert, rule R15", "24 min of one GPU (estimate)")
    ]
    assert view.row.percent == 100
    assert view.row.ran == "1 h 12 min"
    assert view.row.started is not None
    assert view.row.started.relative == "42 min ago"


def test_job_page_shows_container_only_on_cluster() -> None:
    one = job("j", State.QUEUED)
    where = Container("lab/nb@sha256:4f", home=False, text="It runs in lab/nb@sha256:4f; no home.")
    for container, texts in ((where, [where.text]), (None, [])):
        view = job_view(JobDetail(one, [], container), [], SUSAN, NOW)
        assert [fact.text for fact in view.facts if fact.name == "Container"] == texts


# --------------------------------------------------------------------------- benches, projects


def test_bench_queue_shows_position_wait_and_estimate() -> None:
    why = Reason("benches-full", "2 GPUs are not free: 0 on one machine now.", {}, "Wait.")
    soon = EstimatedStart(NOW, NOW + minutes(12), None)
    first = LinePlace("x", 1, 3, NOW - minutes(4), why, soon)
    third = LinePlace("y", 3, 3, NOW, why, None)
    waiting = [
        InLine("joe", "paper", 2, ["A100", "H100"], first),
        InLine("zoe", "", 1, [], third),
    ]
    one, other = line_view(waiting, NOW)
    assert (one.user, one.server, one.gpus) == ("joe", "server “paper”", "2 GPUs A100 or H100")
    assert (one.place, one.since.relative) == ("1st of 3", "4 min ago")
    assert (one.starts, one.reason) == ("in about 12 min", why.text)
    assert (other.server, other.gpus, other.place) == ("default server", "1 GPU", "3rd of 3")
    assert other.starts == "not known yet"


def test_bench_row_shows_holder_use_and_free_gpus() -> None:
    lease = Lease("a" * 26, "joe", "paper", "s1", ["GPU-sim-lab1-1"], NOW - minutes(90))
    staged = StagedPool(held_leases=[lease], build_quotas={"joe": 2, "ada": 1})
    quotas = [staged.quota(ADMIN, user) for user in ("joe", "ada")]
    rows = benches_view([lease], quotas, [gpu(1)], NOW)
    assert [(row.user, row.use, row.free, row.rule) for row in rows] == [
        ("ada", "0 of 1 GPU", 1, "set for user ada"),
        ("joe", "1 of 2 GPUs", 1, "set for user joe"),
    ]
    held = rows[1].held[0]
    assert (held.active, held.idle) == (None, False)
    assert (held.server, held.gpus, held.since.relative) == (
        "server “paper”",
        "lab1: 1",
        "1 h 30 min ago",
    )


def test_bench_row_shows_last_activity_and_idleness() -> None:
    seen = NOW - minutes(180)
    lease = Lease("a" * 26, "joe", "", "s1", ["GPU-sim-lab1-1"], NOW - minutes(300), seen)
    staged = StagedPool(held_leases=[lease], build_quotas={"joe": 2})
    one = gpu(1, GpuState.BUILD_HELD, idle_since=seen)
    (row,) = benches_view([lease], [staged.quota(ADMIN, "joe")], [one], NOW)
    assert row.held[0].active is not None
    assert (row.held[0].active.relative, row.held[0].idle) == ("3 h ago", True)


def test_project_row_shows_gpus_reclaimed_this_week() -> None:
    given = ProjectQuota("a", 2, 3, 4, None, 1, reclaimed_gpus=3, pauses=2)
    rows = projects_view([given, ProjectQuota("b", 0, 0, 0, None, 0)]).rows
    assert [row.reclaimed_gpus for row in rows] == ["3 GPUs in 2 pauses", "–"]


def test_project_bars_share_scale_and_mark_quotas() -> None:
    view = projects_view([ProjectQuota("a", 2, 3, 4, None, 1), ProjectQuota("b", 0, 0, 0, 2, 0)])
    assert view.scale == 4
    first, second = view.rows
    assert (first.within, first.over, first.quota_mark, first.share_mark) == (50, 50, 50, 75)
    assert (second.within, second.over, second.quota_mark, second.share_mark) == (0, 0, None, None)
    assert first.summary == "4 GPUs allocated, 2 of them over quota; 2 guaranteed, fair share 3"


def test_project_link_unfolds_parent_projects() -> None:
    projects = [ProjectQuota("lab", 0, 0, 0, None, 0)]
    projects += [ProjectQuota(f"p{i}", 0, 0, 0, None, 0, "lab") for i in range(30)]
    assert [row.name for row in projects_view(projects).rows] == ["lab"]
    rows = projects_view(projects, at="p7").rows
    assert [row.address for row in rows if row.name == "p7"] == ["?at=p7#project-p7"]
    assert len(rows) == 31


def test_projects_are_nested_and_foldable() -> None:
    def one(name: str, above: str | None) -> ProjectQuota:
        return ProjectQuota(name, 1, 1, 1, None, 0, above)

    few = [one("b", "a"), one("a", None), one("c", "b"), one("d", None)]
    rows = projects_view(few).rows
    assert [(row.name, row.depth, row.below, row.folded) for row in rows] == [
        ("a", 0, 2, False), ("b", 1, 1, False), ("c", 2, 0, False), ("d", 0, 0, False),
    ]  # fmt: skip
    assert (rows[0].toggle, rows[1].toggle) == ("?fold=a", "?fold=b")
    folded = projects_view(few, ["b"]).rows
    assert [row.name for row in folded] == ["a", "b", "d"]
    assert (folded[1].folded, folded[1].toggle, folded[0].toggle) == (True, "?", "?fold=a&fold=b")
    # A parent with many personal projects is folded by default.
    many = [one("people", None), *(one(f"p{n}", "people") for n in range(30))]
    assert [row.name for row in projects_view(many).rows] == ["people"]
    assert len(projects_view(many, ["people"]).rows) == 31


@given(
    st.lists(
        st.builds(
            ProjectQuota,
            name=st.text(min_size=1, max_size=5),
            quota=st.none() | st.integers(0, 500),
            fair_share=st.integers(0, 500),
            allocated=st.integers(0, 500),
            limit=st.none() | st.integers(0, 500),
            waiting=st.integers(0, 9),
        )
    )
)
def test_project_bars_stay_within_scale(projects: list[ProjectQuota]) -> None:
    for row in projects_view(projects).rows:
        assert 0 <= row.within + row.over <= 100.02
        assert all(mark is None or 0 <= mark <= 100 for mark in (row.quota_mark, row.share_mark))


# --------------------------------------------------------------------------- logs


def test_log_is_shown_without_control_sequences() -> None:
    log = (
        b"\x1b]0;title\x07\x1b[1;31mloss\x1b[0m\r\n 10%|#  |\r100%|###|\nbeep\x07\xe2\x80\xaedone\n"
    )
    assert plain(log) == "loss\n100%|###|\nbeepdone\n"


def test_truncated_log_begins_at_line_start() -> None:
    assert tail(b"\x80lf a line\nwhole\n", cut=True) == "whole\n"
    assert tail(b"first\n", cut=False) == "first\n"


@given(st.binary(max_size=400))
def test_plain_log_has_no_control_characters(data: bytes) -> None:
    assert not any(ord(sign) < 32 and sign not in "\t\n" for sign in plain(data))
