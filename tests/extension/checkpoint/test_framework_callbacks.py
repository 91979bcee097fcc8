"""Callbacks of the frameworks: they save, end as paused after a notice, and find their checkpoint.

``benchmarks/exact_resume.py`` shows bit-exact resumption with the frameworks themselves. Here
stand-ins make the same calls.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchpool.checkpoint import reports, votes


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a job without a notice; writing its file ``notice`` requests a pause."""
    monkeypatch.setenv("BENCHPOOL_NOTICE_FILE", str(tmp_path / "notice"))
    monkeypatch.setenv("BENCHPOOL_CHECKPOINT_DIR", str(tmp_path / "saved"))
    monkeypatch.setenv("BENCHPOOL_PROGRESS_FILE", str(tmp_path / "progress"))
    monkeypatch.setattr(votes, "stopping", False)
    monkeypatch.setattr(reports, "by_program", False)
    monkeypatch.setattr(reports, "_followed", 0.0)
    monkeypatch.setattr(reports, "_last_text", "")
    monkeypatch.setattr(reports, "FOLLOW_S", 0.0)
    return tmp_path


def module(
    monkeypatch: pytest.MonkeyPatch, name: str, framework: str, inside: str, base: str
) -> Any:
    """Import a module of callbacks with a stand-in for its framework."""
    for part in ("", *(f".{each}" for each in inside.split(".") if each)):
        monkeypatch.setitem(sys.modules, framework + part, types.ModuleType(framework + part))
    where = sys.modules[f"{framework}.{inside}" if inside else framework]
    monkeypatch.setattr(where, base, type(base, (), {}), raising=False)
    monkeypatch.delitem(sys.modules, f"benchpool.checkpoint.{name}", raising=False)
    return importlib.import_module(f"benchpool.checkpoint.{name}")


def fraction(job: Path) -> float:
    return float(json.loads((job / "progress").read_text())["fraction"])


def test_huggingface_trainer_save_becomes_checkpoint(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huggingface = module(monkeypatch, "huggingface", "transformers", "", "TrainerCallback")
    assert huggingface.latest() is None
    callback = huggingface.HuggingFacePauses()
    state = types.SimpleNamespace(global_step=3, max_steps=12)
    control = types.SimpleNamespace(should_save=False, should_training_stop=False)
    callback.on_step_end(None, state, control)
    assert (control.should_save, control.should_training_stop) == (False, False)
    assert fraction(job) == 0.25
    (job / "notice").write_text("{}")
    callback.on_step_end(None, state, control)
    assert (control.should_save, control.should_training_stop) == (True, True)
    written = job / "out" / "checkpoint-3"
    written.mkdir(parents=True)
    (written / "model.safetensors").write_text("weights")
    with pytest.raises(SystemExit, match="75"):
        callback.on_save(types.SimpleNamespace(output_dir=str(job / "out")), state, control)
    assert (Path(huggingface.latest()) / "model.safetensors").read_text() == "weights"


class LightningTrainer:
    def __init__(self) -> None:
        self.global_step, self.estimated_stepping_batches, self.is_last_batch = 5, 20, False

    def save_checkpoint(self, path: Path) -> None:
        path.write_text(f"step {self.global_step}")


class Shuffled:
    """Loader that shuffles when iteration begins and draws a number for each item."""

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[tuple[int, float]]:
        for item in random.sample(range(6), 6):
            yield item, random.random()


def lightning_epochs(
    lightning: Any, job: Path, pause_after: int | None, end: bool = False
) -> tuple[list[Any], Any]:
    """Run two epochs as Lightning does, with a pause after ``pause_after`` batches."""
    random.seed(3)
    saving, trainer = lightning.LightningPauses(), LightningTrainer()
    loader, seen = saving.resumable(Shuffled()), []
    begin = json.loads((job / "at").read_text()) if (job / "at").exists() else 0
    for epoch in range(begin // 6, 2):
        for at, batch in enumerate(loader, begin % 6 + 1 if epoch == begin // 6 else 1):
            seen.append(batch)
            trainer.is_last_batch = at == 6
            if len(seen) == pause_after:
                (job / "notice").write_text("{}")
                (job / "at").write_text(str(epoch * 6 + at))
            saving.on_train_batch_end(trainer, None, None, None, None)
        saving.on_train_epoch_end(trainer, None)
    return seen, saving


@pytest.mark.parametrize("pause_after", [1, 4, 6, 9])
def test_lightning_resumes_interrupted_epoch_in_order(
    job: Path, monkeypatch: pytest.MonkeyPatch, pause_after: int
) -> None:
    lightning = module(monkeypatch, "lightning", "lightning", "pytorch", "Callback")
    monkeypatch.setitem(sys.modules, "lightning.pytorch", sys.modules["lightning.pytorch"])
    whole, _ = lightning_epochs(lightning, job, None)
    with pytest.raises(SystemExit, match="75"):
        lightning_epochs(lightning, job, pause_after)
    (job / "notice").unlink()
    monkeypatch.setattr(votes, "stopping", False)
    rest, saving = lightning_epochs(lightning, job, None)
    assert rest == whole[pause_after:]
    assert Path(saving.latest()).read_text() == "step 5"


class KerasModel:
    built, optimizer = True, None

    def __init__(self) -> None:
        self.weights = "new"

    def save_weights(self, path: Path) -> None:
        path.write_text(self.weights)

    def load_weights(self, path: Path) -> None:
        self.weights = path.read_text()


def end_batch_and_epoch(saving: Any, batch: int) -> None:
    saving.on_train_batch_end(batch)
    saving.on_epoch_end(4)


@pytest.mark.parametrize(("batch", "epoch_after"), [(3, 4), (9, 5)])
def test_keras_restarts_interrupted_epoch_with_learned_weights(
    job: Path, monkeypatch: pytest.MonkeyPatch, batch: int, epoch_after: int
) -> None:
    keras = module(monkeypatch, "keras", "keras", "callbacks", "Callback")
    saving = keras.KerasPauses()
    saving.model, saving.params = KerasModel(), {"epochs": 8, "steps": 10}
    assert saving.epoch == 0
    saving.on_train_begin()
    saving.on_epoch_begin(4)
    saving.model.weights = "learned"
    drawn = random.getstate()
    (job / "notice").write_text("{}")
    with pytest.raises(SystemExit, match="75"):
        end_batch_and_epoch(saving, batch)
    assert fraction(job) == pytest.approx((4 + (batch + 1) / 10) / 8)
    again = keras.KerasPauses()
    again.model = KerasModel()
    assert again.epoch == epoch_after
    random.random()
    again.on_train_begin()
    again.on_epoch_begin(again.epoch)
    assert again.model.weights == "learned"
    assert random.getstate() == drawn
