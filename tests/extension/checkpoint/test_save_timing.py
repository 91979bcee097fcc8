"""Periodic saves of a loop: when they happen, and that they do not delay the training."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, ItemsView, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchpool import checkpoint
from benchpool.checkpoint import commits, free_memory, pacing, votes
from benchpool_support import torch_stand_in
from benchpool_support.clocks import FakeClock
from benchpool_support.loop_attempts import Attempt, Code, Killed, Model, run

TURNS = 20
TURN_S = 60.0


class SlowModel(Model):
    """Model whose state takes a while to collect."""

    def __init__(self, clock: FakeClock, save_s: float) -> None:
        super().__init__()
        self._clock, self._save_s = clock, save_s

    def state_dict(self) -> dict[str, Any]:
        self._clock.pass_s(self._save_s)
        return super().state_dict()


def turns_of_a_minute(clock: FakeClock, save_s: float) -> Code:
    """Return a training with a turn each minute that saves every 5 minutes."""

    def code(attempt: Attempt, progress: list[Any]) -> object:
        model = SlowModel(clock, save_s)
        for _ in checkpoint.loop(range(TURNS), model=model, minutes=5):
            clock.pass_s(TURN_S)
            attempt.turn()
        return None

    return code


# A save of 30 s is at most 5 % of the time if the next one follows after 600 s.
@pytest.mark.parametrize(
    ("save_s", "killed_in_turn", "saved_turns"),
    [
        (0.0, 5, 0),
        (0.0, 6, 5),
        (0.0, 10, 5),
        (0.0, 11, 10),
        (30.0, 6, 5),
        (30.0, 15, 5),
        (30.0, 16, 15),
    ],
)
def test_periodic_save_keeps_interval_and_share_of_time(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    save_s: float,
    killed_in_turn: int,
    saved_turns: int,
) -> None:
    clock = FakeClock()
    code = turns_of_a_minute(clock, save_s)
    with pytest.raises(Killed):
        run(code, tmp_path, Attempt(tmp_path, {"kill": killed_in_turn}), monkeypatch, clock.now)
    again = Attempt(tmp_path)
    run(code, tmp_path, again, monkeypatch, clock.now)
    assert next(again.turns) == TURNS - saved_turns + 1
    resumed = f"resumes after {saved_turns} of {TURNS}"
    assert (resumed in capsys.readouterr().err) == (saved_turns > 0)


def test_callback_save_waits_for_interval(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setattr(votes, "stopping", False)
    clock = FakeClock()
    pace = pacing.Pace(5, clock.now)
    for _ in range(2):
        clock.pass_s(299.0)
        assert not pace.save_now()
        clock.pass_s(1.0)
        assert pace.save_now()
        assert pace.save_now()  # until the framework has saved
        pace.saved()
    assert not pace.stopping


class WatchedState(Mapping[str, Any]):
    """State that records the thread that writes it. Other threads wait for an event first."""

    def __init__(self, event: threading.Event) -> None:
        self._event = event
        self.threads: list[threading.Thread] = []

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def items(self) -> ItemsView[str, Any]:
        thread = threading.current_thread()
        self.threads.append(thread)
        if thread is not threading.main_thread():
            assert self._event.wait(120), "the training waits for the save"
        return {}.items()


class WatchedModel:
    """Model with weights that change in place, and a state that watches its writer."""

    def __init__(self, weights: Any) -> None:
        self.weights, self.trained = weights, threading.Event()
        self.watched = WatchedState(self.trained)

    def learn(self) -> None:
        for at in range(len(self.weights)):
            self.weights[at] += 1

    def state_dict(self) -> dict[str, Any]:
        return {"watched": self.watched, "weights": self.weights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = state["weights"]


def watched_training(weights: Callable[[], Any], models: list[WatchedModel]) -> Code:
    """Return a training of three turns. The first save may end only in the turn after it."""

    def code(attempt: Attempt, progress: list[Any]) -> object:
        models.append(model := WatchedModel(weights()))
        for turn in checkpoint.loop(range(3), model=model, minutes=0):
            model.learn()
            if turn > 0:
                model.trained.set()
            attempt.turn()
        return list(model.weights)

    return code


def written_by(code: Code, models: list[WatchedModel], run_once: Callable[[Attempt], object],
               folder: Path) -> list[bool]:  # fmt: skip
    """Kill a training in its second turn, resume it, and check its result.

    Returns:
        For each write before the kill, whether the main thread did it.
    """
    with pytest.raises(Killed):
        run_once(Attempt(folder, {"kill": 2}))
    again = Attempt(folder)
    assert run_once(again) == [3.0, 3.0]
    assert next(again.turns) == 3  # two of three turns were left
    return [each is threading.main_thread() for each in models[0].watched.threads]


def array() -> Any:
    return np.zeros(2)


def tensor() -> Any:
    return torch_stand_in.Tensor([0.0, 0.0])


@pytest.mark.parametrize("weights", [array, tensor])
def test_periodic_save_is_written_beside_training(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, weights: Callable[[], Any]
) -> None:
    torch_stand_in.install(monkeypatch)
    models: list[WatchedModel] = []
    code = watched_training(weights, models)
    in_line = written_by(code, models, lambda it: run(code, tmp_path, it, monkeypatch), tmp_path)
    assert in_line == [False]


def test_save_that_does_not_fit_twice_into_memory_is_written_in_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    models: list[WatchedModel] = []
    code = watched_training(array, models)
    monkeypatch.setattr(free_memory, "available", lambda: 2 * array().nbytes - 1)
    in_line = written_by(code, models, lambda it: run(code, tmp_path, it, monkeypatch), tmp_path)
    assert in_line == [True]


def test_save_of_several_ranks_is_written_in_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    group = torch_stand_in.Group(itertools.repeat((0, 0)), rank=0)
    torch_stand_in.install(monkeypatch, group=group)
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_SHARED", "no")  # no wait for the other rank
    for name, value in {"_base": None, "_together": 0}.items():
        monkeypatch.setattr(commits, name, value)
    models: list[WatchedModel] = []
    code = watched_training(array, models)
    with pytest.raises(Killed):
        run(code, tmp_path, Attempt(tmp_path, {"kill": 2}), monkeypatch)
    assert models[0].watched.threads == [threading.main_thread()]
