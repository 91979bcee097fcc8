"""What the pages say, from contract objects alone."""

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


def test_every_gpu_is_one_square_on_its_node_in_the_order_of_its_index() -> None:
    staged = StagedPool(gpus=[gpu(1, node="b"), gpu(0, node="b"), gpu(0, node="a")])
    view = pool_view(staged.status(ADMIN), {}, NOW)
    assert [(node.name, [one.index for one in node.squares]) for node in view.nodes] == [
        ("a", [0]),
        ("b", [0, 1]),
    ]


def test_each_state_has_a_word_a_letter_and_a_shape_of_its_own() -> None:
    assert set(words.GPU_WORDS) == set(GpuState)
    shown = [*words.GPU_WORDS.values(), words.IDLE]
    for kind in ("word", "letter", "style"):
        assert len({getattr(one, kind) for one in shown}) == len(GpuState) + 1


def test_an_idle_bench_is_a_square_of_its_own_with_its_age_and_the_legend_adds_up() -> None:
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


def test_nodes_of_one_rack_stand_together() -> None:
    staged = StagedPool(gpus=[gpu(0, node=name) for name in ("a", "b", "c", "d")])
    racks = {"a": "r2", "b": "r1", "c": "r2"}
    view = pool_view(staged.status(ADMIN), {}, NOW, racks)
    assert [(one.rack, one.name) for one in view.nodes] == [
        ("", "d"), ("r1", "b"), ("r2", "a"), ("r2", "c"),
    ]  # fmt: skip


def test_a_square_names_its_holder_only_where_the_reader_is_told() -> None:
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


def test_places_of_gpus_are_said_by_node_and_index() -> None:
    gpus = [gpu(3), gpu(0), gpu(1, node="lab2")]
    assert gpu_places(gpus) == "lab1: 0, 3; lab2: 1"
    assert gpu_places(gpus, ["GPU-sim-lab1-3", "GPU-gone"]) == "lab1: 3; GPU-gone"


# --------------------------------------------------------------------------- jobs


def test_the_queue_stands_in_the_order_of_its_turn_with_the_place_in_each_project() -> None:
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


def test_a_place_among_the_jobs_one_may_see_is_said_to_be_that() -> None:
    rows = jobs_view([job("a"), job("b")], {}, [], SUSAN, NOW).waiting
    assert [row.position for row in rows] == ["1st of 2 you see", "2nd of 2 you see"]


def test_jobs_are_sorted_by_what_they_do_and_only_the_last_ended_ones_are_shown() -> None:
    ended = [
        job(f"e{number}", State.SUCCEEDED, ended=NOW - minutes(number)) for number in range(30)
    ]
    jobs = [job("r", State.RUNNING), job("s", State.STARTING), job("z", State.PAUSED), *ended]
    view = jobs_view(jobs, {}, [], SUSAN, NOW)
    assert {row.job.name for row in view.running} == {"r", "s"}
    assert [row.job.name for row in view.paused] == ["z"]
    assert [row.job.name for row in view.ended] == [f"e{n}" for n in range(ENDED_SHOWN)]


def test_a_waiting_job_shows_its_reason_and_what_would_help() -> None:
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
def test_a_job_offers_what_its_state_allows(state: State, verbs: list[str]) -> None:
    assert [action.verb for action in actions(job("j", state), SUSAN, "")] == verbs


def test_cancelling_says_what_is_lost_only_where_something_is() -> None:
    waits = actions(job("w"), SUSAN, "")[-1]
    runs = actions(job("r", State.RUNNING, gpus=4), SUSAN, "12 min")[-1]
    assert waits.confirm == ""
    assert runs.confirm.startswith("It has run 12 min on 4 GPUs;")


def test_interventions_in_other_peoples_jobs_ask_for_a_reason() -> None:
    theirs = job("theirs", State.RUNNING, user="joe")
    assert all(action.asks_reason for action in actions(theirs, ADA, "1 min"))
    assert not any(action.asks_reason for action in actions(theirs, Reader("joe", False), "1 min"))


def test_only_a_job_on_gpus_is_called_within_quota() -> None:
    """One that has run and waits again holds nothing, whatever it asks for."""

    def quota_of(state: State) -> str:
        one = job("j", state, started=NOW - minutes(90), gpus=4)
        facts = job_view(JobDetail(one, []), [], SUSAN, NOW).facts
        return next(fact.text for fact in facts if fact.name == "Quota")

    assert quota_of(State.RUNNING) == "within quota"
    waits = "preemptible: what it holds beyond the quota may be paused for others"
    assert quota_of(State.QUEUED) == quota_of(State.SUCCEEDED) == waits


def test_a_jobs_page_has_its_attempts_newest_first_and_what_each_pause_cost() -> None:
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


def test_a_jobs_page_says_its_image_and_home_on_a_cluster_only() -> None:
    one = job("j", State.QUEUED)
    where = Container("lab/nb@sha256:4f", home=False, text="It runs in lab/nb@sha256:4f; no home.")
    for container, said in ((where, [where.text]), (None, [])):
        view = job_view(JobDetail(one, [], container), [], SUSAN, NOW)
        assert [fact.text for fact in view.facts if fact.name == "Container"] == said


# --------------------------------------------------------------------------- benches, projects


def test_the_line_says_who_waits_for_what_since_when_and_until_when() -> None:
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


def test_a_bench_says_who_holds_what_since_when_and_what_is_free() -> None:
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


def test_a_bench_says_when_it_was_last_seen_and_that_it_is_idle() -> None:
    seen = NOW - minutes(180)
    lease = Lease("a" * 26, "joe", "", "s1", ["GPU-sim-lab1-1"], NOW - minutes(300), seen)
    staged = StagedPool(held_leases=[lease], build_quotas={"joe": 2})
    one = gpu(1, GpuState.BUILD_HELD, idle_since=seen)
    (row,) = benches_view([lease], [staged.quota(ADMIN, "joe")], [one], NOW)
    assert row.held[0].active is not None
    assert (row.held[0].active.relative, row.held[0].idle) == ("3 h ago", True)


def test_a_project_says_what_it_gave_back_this_week() -> None:
    given = ProjectQuota("a", 2, 3, 4, None, 1, gave_back=3, pauses=2)
    rows = projects_view([given, ProjectQuota("b", 0, 0, 0, None, 0)]).rows
    assert [row.gave_back for row in rows] == ["3 GPUs in 2 pauses", "–"]


def test_bars_share_one_scale_from_zero_and_mark_quota_and_fair_share() -> None:
    view = projects_view([ProjectQuota("a", 2, 3, 4, None, 1), ProjectQuota("b", 0, 0, 0, 2, 0)])
    assert view.scale == 4
    first, second = view.rows
    assert (first.within, first.over, first.quota_mark, first.share_mark) == (50, 50, 50, 75)
    assert (second.within, second.over, second.quota_mark, second.share_mark) == (0, 0, None, None)
    assert first.summary == "4 GPUs allocated, 2 of them over quota; 2 guaranteed, fair share 3"


def test_the_link_to_a_project_unfolds_what_is_above_it() -> None:
    projects = [ProjectQuota("lab", 0, 0, 0, None, 0)]
    projects += [ProjectQuota(f"p{i}", 0, 0, 0, None, 0, "lab") for i in range(30)]
    assert [row.name for row in projects_view(projects).rows] == ["lab"]
    rows = projects_view(projects, at="p7").rows
    assert [row.address for row in rows if row.name == "p7"] == ["?at=p7#project-p7"]
    assert len(rows) == 31


def test_projects_stand_below_the_one_above_and_fold() -> None:
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
    # A project of their own for each of many people is folded until somebody unfolds it.
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
def test_no_bar_leaves_its_scale(projects: list[ProjectQuota]) -> None:
    for row in projects_view(projects).rows:
        assert 0 <= row.within + row.over <= 100.02
        assert all(mark is None or 0 <= mark <= 100 for mark in (row.quota_mark, row.share_mark))


# --------------------------------------------------------------------------- logs


def test_a_log_shows_what_a_terminal_would_leave_standing() -> None:
    log = (
        b"\x1b]0;title\x07\x1b[1;31mloss\x1b[0m\r\n 10%|#  |\r100%|###|\nbeep\x07\xe2\x80\xaedone\n"
    )
    assert plain(log) == "loss\n100%|###|\nbeepdone\n"


def test_a_cut_log_begins_with_a_whole_line() -> None:
    assert tail(b"\x80lf a line\nwhole\n", cut=True) == "whole\n"
    assert tail(b"first\n", cut=False) == "first\n"


@given(st.binary(max_size=400))
def test_no_bytes_leave_control_signs_in_the_text(data: bytes) -> None:
    assert not any(ord(sign) < 32 and sign not in "\t\n" for sign in plain(data))
