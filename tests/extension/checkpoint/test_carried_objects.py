"""Objects of torch and Keras over pauses: samplers, random states, tensors, weights."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchpool import checkpoint
from benchpool.checkpoint import random_states, trees
from benchpool_support import torch_stand_in
from benchpool_support.loop_attempts import Attempt, Code, result_after
from benchpool_support.torch_stand_in import DistributedSampler, RandomSampler, Tensor

ITEMS = range(5)
PAUSE_AFTER_EACH_TURN = [("pause", 1)] * 30


def assert_pauses_change_nothing(code: Code) -> None:
    """Check that a program paused after each turn ends with the result of one without pauses."""
    whole, _ = result_after(code, [])
    paused, came = result_after(code, PAUSE_AFTER_EACH_TURN)
    assert paused == whole
    assert came
    assert set(came) == {"pause 75"}


def with_own_generator(torch: Any) -> Any:
    return RandomSampler(ITEMS, torch.Generator().manual_seed(3))


def with_global_generator(torch: Any) -> Any:
    return RandomSampler(ITEMS)


def by_epoch(torch: Any) -> Any:
    return DistributedSampler(ITEMS)


@pytest.mark.parametrize("sampler_of", [with_own_generator, with_global_generator, by_epoch])
@pytest.mark.parametrize("inside", [False, True])
def test_sampler_continues_order_of_interrupted_epoch(
    monkeypatch: pytest.MonkeyPatch, sampler_of: Callable[[Any], Any], inside: bool
) -> None:
    """The sampler is an argument of the loop over epochs, or of the one over batches."""

    def code(attempt: Attempt, progress: list[Any]) -> object:
        torch = torch_stand_in.install(monkeypatch)
        sampler, seen = sampler_of(torch), []  # type: ignore[var-annotated]
        of_epochs = {} if inside else {"sampler": sampler}
        of_batches = {"sampler": sampler} if inside else {}
        for epoch in checkpoint.loop(range(3), seen=seen, **of_epochs):
            for item in checkpoint.loop(sampler, **of_batches):
                seen.append(item)
                attempt.turn()
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(epoch + 1)
        return seen

    assert_pauses_change_nothing(code)


class Weights:
    """Model with the interface of Keras."""

    def __init__(self) -> None:
        self.weights = [np.zeros(2), np.zeros((2, 2))]

    def get_weights(self) -> list[Any]:
        return self.weights

    def set_weights(self, weights: list[Any]) -> None:
        self.weights = weights


def test_model_with_set_weights_is_restored() -> None:
    def code(attempt: Attempt, progress: list[Any]) -> object:
        model = Weights()
        for _ in checkpoint.loop(range(4), model=model):
            model.weights = [each * 2 + random.random() for each in model.weights]
            attempt.turn()
        return [each.tolist() for each in model.weights]

    assert_pauses_change_nothing(code)


class Net:
    """Model of torch with weights on a GPU."""

    def __init__(self) -> None:
        self.weights = Tensor([0.0, 0.0], "cuda")

    def learn(self, *noise: float) -> float:
        self.weights = Tensor([0.9 * each + sum(noise) for each in self.weights.values], "cuda")
        return self.weights.values[0]

    def state_dict(self) -> dict[str, Any]:
        return {"layer": {"weights": self.weights}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.weights = state["layer"]["weights"].to("cuda")


def test_training_on_gpus_continues_with_same_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second loop follows, whose saves keep the tensors of the first."""

    def code(attempt: Attempt, progress: list[Any]) -> object:
        torch = torch_stand_in.install(monkeypatch, gpus=2)
        torch.manual_seed(7)
        net, own, losses = Net(), torch.Generator().manual_seed(5), []  # type: ignore[var-annotated]
        for _ in checkpoint.loop(range(4), net=net, own=own, losses=losses):
            noise = torch.draw(), torch.cuda.draw(0), torch.cuda.draw(1), own.draw()
            losses.append(net.learn(*noise))
            attempt.turn()
        scores: list[float] = []
        for _ in checkpoint.loop(range(3), scores=scores):
            scores.append(net.weights.values[1] * torch.cuda.draw(1))
            attempt.turn()
        return losses, scores, net.weights.values, torch.draw()

    assert_pauses_change_nothing(code)


def test_program_that_uses_no_gpu_initializes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_stand_in.install(monkeypatch, gpus=2)
    assert "cuda" not in random_states.capture()


def test_states_of_more_gpus_than_present_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch_stand_in.install(monkeypatch, gpus=3)
    before.cuda.draw(0)
    saved = random_states.capture()
    expected = before.cuda.draw(0)
    after = torch_stand_in.install(monkeypatch, gpus=1)
    random_states.restore(saved)
    assert after.cuda.draw(0) == expected


def test_tensors_are_read_into_cpu_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch_stand_in.install(monkeypatch)
    tree = {"net": [Tensor([1.5], "cuda"), {"bias": Tensor([2.0, 3.0])}], "step": 4}
    trees.write(tmp_path, "state", tree)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["state.json", "state.pt"]
    monkeypatch.delitem(sys.modules, "torch")
    torch_stand_in.install(monkeypatch)
    found = trees.read(tmp_path, "state")
    first, second = found["net"][0], found["net"][1]["bias"]
    assert [(each.device, each.values) for each in (first, second)] == [
        ("cpu", [1.5]),
        ("cpu", [2.0, 3.0]),
    ]
    assert found["step"] == 4
