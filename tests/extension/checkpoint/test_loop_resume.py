"""A loop that is paused or killed at any moment ends with the result of an uninterrupted loop."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool import checkpoint
from benchpool.checkpoint import loop_saves, reports
from benchpool_support.loop_attempts import Attempt, Code, Killed, Model, result_after, run


def one_loop(attempt: Attempt, progress: list[Any]) -> object:
    model = Model()
    losses: list[float] = []
    for step in checkpoint.loop(range(12), model=model, losses=losses, minutes=0):
        losses.append(model.learn(step, random.random()))
        attempt.turn()
    return losses, model.state_dict()


def epochs_of_shuffled_batches(attempt: Attempt, progress: list[Any]) -> object:
    """Draw the order in the outer loop and loop over a generator of batches inside."""
    model, own = Model(), random.Random(5)
    losses: list[float] = []
    for epoch in checkpoint.loop(range(3), model=model, losses=losses, own=own, minutes=0):
        order = random.sample(range(4), 4)
        for item in checkpoint.loop(each for each in order):
            losses.append(model.learn(item + epoch, random.random() + own.random()))
            attempt.turn()
            if model.weight > 90:
                break
        for item in checkpoint.loop([7, 8]):
            losses.append(model.weight * item + random.random())
            attempt.turn()
    return losses, model.state_dict(), random.random()


def one_after_the_other(attempt: Attempt, progress: list[Any]) -> object:
    """Run two loops over one model, with a result computed between them."""
    model = Model()
    scores: list[float] = []
    for step in checkpoint.loop(range(6), model=model, minutes=0):
        model.learn(step, random.random())
        attempt.turn()
        if step == 4:
            break
    first = model.weight
    for step in checkpoint.loop(range(3), model=model, scores=scores, minutes=0):
        scores.append(first + model.learn(step, random.random()))
        attempt.turn()
    drawn = [random.random()]
    for _ in checkpoint.loop(range(2), drawn=drawn, minutes=0):
        drawn.append(random.random())
        attempt.turn()
    return first, scores, model.state_dict(), drawn


def folds_with_models_of_their_own(attempt: Attempt, progress: list[Any]) -> object:
    best: dict[str, Any] = {}
    for fold in checkpoint.loop(["a", "b", "c"], best=best, minutes=0):
        model = Model()
        model.weight = random.random()
        for step in checkpoint.loop(range(4), model=model, minutes=0):
            model.learn(step, random.random())
            attempt.turn()
        best[fold] = (model.weight, {1, 2}, None)
    return best


CODES = [
    one_loop,
    epochs_of_shuffled_batches,
    one_after_the_other,
    folds_with_models_of_their_own,
]


@pytest.mark.parametrize("code", CODES)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["pause", "kill"]), st.integers(1, 9)), max_size=6))
def test_loop_result_survives_any_pauses_and_kills(code: Code, ends: list[tuple[str, int]]) -> None:
    whole, _ = result_after(code, [])
    assert result_after(code, ends)[0] == whole


@pytest.mark.parametrize("code", CODES)
def test_loop_paused_after_each_turn_repeats_none(code: Code) -> None:
    whole, _ = result_after(code, [])
    paused, came = result_after(code, [("pause", 1)] * 100)
    assert paused == whole
    assert 5 < len(came) < 30
    assert set(came) == {"pause 75"}


def test_killed_loop_resumes_from_last_save(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(loop_saves, "SHARE", 1e9)  # regardless of the duration of the last save
    with pytest.raises(Killed):
        run(one_loop, tmp_path, Attempt(tmp_path, {"kill": 6}), monkeypatch)
    again = Attempt(tmp_path)
    result = run(one_loop, tmp_path, again, monkeypatch)
    assert "resumes after 5 of 12" in capsys.readouterr().err
    assert next(again.turns) == 8  # 7 of 12 turns were left
    assert result == result_after(one_loop, [])[0]


def test_loop_outside_job_is_plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BENCHPOOL_CHECKPOINT_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    loop = checkpoint.loop(range(3), seen=[])
    assert len(loop) == 3
    assert list(loop) == [0, 1, 2]
    assert list(tmp_path.iterdir()) == []


def test_unsavable_object_is_rejected_before_first_turn() -> None:
    with pytest.raises(TypeError, match=r"loop\(model=…\): object cannot be saved and restored"):
        checkpoint.loop(range(3), model=object())


def test_failed_save_is_reported_and_training_continues(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def code(attempt: Attempt, progress: list[Any]) -> object:
        odd: dict[str, Any] = {}
        for _ in checkpoint.loop(range(2), odd=odd, minutes=0):
            odd["file"] = sys.stdout
        return "done"

    assert run(code, tmp_path, Attempt(tmp_path), monkeypatch) == "done"
    assert "odd.file has the type" in capsys.readouterr().err


def test_loop_reports_progress_unless_program_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BENCHPOOL_PROGRESS_FILE", str(tmp_path / "progress"))
    monkeypatch.setattr(reports, "FOLLOW_S", 0.0)

    def code(attempt: Attempt, progress: list[Any]) -> object:
        for _ in checkpoint.loop(range(4)):
            for _ in checkpoint.loop([1, 2]):
                path = tmp_path / "progress"
                progress.append(json.loads(path.read_text()) if path.exists() else None)
        return [(each["fraction"], each["text"]) for each in progress if each]

    progress: Any = run(code, tmp_path, Attempt(tmp_path), monkeypatch)
    assert progress[:3] == [(0.125, "0 of 4, 1 of 2"), (0.25, "1 of 4"), (0.375, "1 of 4, 1 of 2")]
    checkpoint.progress(0.5, "mine")
    assert json.loads((tmp_path / "progress").read_text())["text"] == "mine"
    assert reports.by_program


def test_loop_end_is_reported_immediately(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENCHPOOL_PROGRESS_FILE", str(tmp_path / "progress"))
    monkeypatch.setattr(reports, "FOLLOW_S", 3600.0)

    def code(attempt: Attempt, progress: list[Any]) -> object:
        for steps in (3, 5):
            for _ in checkpoint.loop(range(steps)):
                pass
            progress.append(json.loads((tmp_path / "progress").read_text())["text"])
        return progress

    assert run(code, tmp_path, Attempt(tmp_path), monkeypatch) == ["3 of 3", "5 of 5"]


PROGRAM = """
import random, sys
from benchpool import checkpoint
random.seed(1)
model = {"weight": 0.0}
for step in checkpoint.loop(range(400), model=model):
    model["weight"] += random.random()
    if step == int(sys.argv[1]):
        print("there", flush=True)
        sys.stdin.readline()
print(model["weight"])
"""


def test_pause_signal_ends_loop_as_paused(tmp_path: Path) -> None:
    env = {"BENCHPOOL_NOTICE_FILE": str(tmp_path / "notice"), "BENCHPOOL_ATTEMPT": "1"}
    env["BENCHPOOL_CHECKPOINT_DIR"] = str(tmp_path / "saved")

    def start(turn: int, more: str = "") -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM + more, str(turn)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    paused = start(200)
    assert paused.stdout is not None
    assert paused.stdout.readline() == "there\n"
    paused.send_signal(signal.SIGTERM)
    paused.communicate("\n", timeout=240)
    assert paused.returncode == 75
    out, err = start(-1).communicate(timeout=240)
    assert "resumes after 201 of 400" in err
    random.seed(1)
    weight = 0.0
    for _ in range(400):  # no sum(): since Python 3.12 it adds more precisely than the loop
        weight += random.random()
    assert float(out) == weight
    after = start(-1, "print('after', flush=True)\nsys.stdin.readline()")
    assert after.stdout is not None
    after.stdout.readline()
    assert after.stdout.readline() == "after\n"
    after.send_signal(signal.SIGTERM)
    after.communicate(timeout=240)
    assert after.returncode == -signal.SIGTERM


RANK = """
import os, pathlib, random, sys, time
from benchpool import checkpoint
rank, meet = int(os.environ["RANK"]), pathlib.Path(sys.argv[1])
def all_meet(number):  # every rank waits for all others, as an all-reduce does
    (meet / f"{number}-{rank}").touch()
    until = time.monotonic() + 120
    while len(list(meet.glob(f"{number}-*"))) < int(os.environ["WORLD_SIZE"]):
        if time.monotonic() > until:
            sys.exit("deadlock")
        time.sleep(0.001)
random.seed(rank)
own = {"sum": 0.0}
for step in checkpoint.loop(range(60), minutes=0):
    all_meet(f"{os.environ['BENCHPOOL_ATTEMPT']}-{step}")
    own["sum"] = random.random()
    if step == 30 and rank == 1 and os.environ["BENCHPOOL_ATTEMPT"] == "1":
        pathlib.Path(os.environ["BENCHPOOL_NOTICE_FILE"]).write_text("{}")
    if step == 33 and rank == 0 and os.environ["BENCHPOOL_ATTEMPT"] == "1":
        pathlib.Path(os.environ["BENCHPOOL_NOTICE_FILE"]).write_text("{}")
print(step, own["sum"])
"""


def test_ranks_save_and_stop_at_same_turn(tmp_path: Path) -> None:
    def ends(attempt: str) -> list[tuple[int, str, str]]:
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", RANK, str(tmp_path)],
                env={
                    "RANK": str(rank),
                    "WORLD_SIZE": "2",
                    "BENCHPOOL_ATTEMPT": attempt,
                    "BENCHPOOL_NOTICE_FILE": str(tmp_path / f"notice-{attempt}-{rank}"),
                    "BENCHPOOL_CHECKPOINT_DIR": str(tmp_path / "saved"),
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        outs = [worker.communicate(timeout=240) for worker in workers]
        return [(w.returncode, *out) for w, out in zip(workers, outs, strict=True)]

    assert [code for code, _, _ in ends("1")] == [75, 75]
    for rank, (code, out, err) in enumerate(ends("2")):
        assert code == 0, err
        assert "resumes after 35 of 60" in err
        random.seed(rank)
        assert float(out.split()[1]) == [random.random() for _ in range(60)][-1]
