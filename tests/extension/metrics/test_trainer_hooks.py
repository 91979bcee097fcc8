"""Trainers of known libraries report metrics by themselves, and changed libraries still run.

tqdm is the real one. Stand-ins make the calls of the large libraries, and
``benchmarks/real_trainers.py`` runs these libraries themselves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchpool_scheduler.worker import job_package

TRANSFORMERS = """
class TrainerCallback:
    pass
class DefaultFlowCallback(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **more):
        pass
DEFAULT_CALLBACKS = [DefaultFlowCallback]
class State:
    is_world_process_zero, global_step = True, 0
class Trainer:
    def __init__(self):
        self.callbacks = [one() for one in DEFAULT_CALLBACKS]
    def train(self):
        state = State()
        for step in (4, 8):
            state.global_step = step
            logs = {"loss": 8 / step, "epoch": 1.0, "eval_runtime": 3.0}
            for one in self.callbacks:
                one.on_log(None, state, None, logs=logs, model=None)
"""
KERAS = """
class Callback:
    model = None
    def set_model(self, model):
        self.model = model
    def on_train_batch_end(self, batch, logs=None): pass
    def on_epoch_end(self, epoch, logs=None): pass
class CallbackList:
    def __init__(self, callbacks=None, add_history=False, add_progbar=False, model=None, **params):
        self.callbacks = list(callbacks or [])
"""
FIT = """
from keras.src.callbacks import callback_list as c
class Model:
    class optimizer:
        iterations = 7
def run(**facts):
    for one in c.CallbackList(model=Model(), **facts).callbacks:
        one.on_train_batch_end(0, {"loss": 2.0})
        one.on_epoch_end(0, {"loss": 1.0, "val_loss": 1.5})
run(add_history=True)
run()
"""
LIGHTNING = """
class Callback:
    pass
class Trainer:
    is_global_zero, sanity_checking, global_step = True, False, 0
    def __init__(self, callbacks=()):
        self.callbacks = list(callbacks)
        self.callback_metrics = {}
    def fit(self):
        for self.global_step in (1, 2):
            self.callback_metrics = {"train_loss": 2.0 / self.global_step}
            for one in self.callbacks:
                one.on_train_batch_end(self, None, None, None, 0)
                one.on_validation_end(self, None)
                one.on_train_epoch_end(self, None)
"""
CHANGED = "DEFAULT_CALLBACKS = ()\nclass Trainer: pass\nclass TrainerCallback: pass\n"


class Job:
    """Python of a job, with stand-in libraries first on its path."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "metrics.jsonl"
        self.libraries = folder / "libraries"
        self.package = folder / "python" / "0" / job_package.NAME
        job_package.write(self.package, job_package.content())

    def library(self, module: str, source: str) -> None:
        path = self.libraries.joinpath(*module.split("."))
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.parents:
            if folder.is_relative_to(self.libraries) and folder != self.libraries:
                (folder / "__init__.py").touch()
        path.with_suffix(".py").write_text(source)

    def run(self, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.package}{os.pathsep}{self.libraries}"
        env = {"PYTHONPATH": path, "BENCHPOOL_METRICS_FILE": str(self.file), **variables}
        return subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )

    def logged(self) -> list[tuple[object, object]]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [(it.get("step"), it["values"]) for it in map(json.loads, lines)]


@pytest.fixture
def python(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_transformers_trainer_reports_metrics(python: Job) -> None:
    python.library("transformers.trainer", TRANSFORMERS)
    python.run("from transformers.trainer import Trainer; Trainer().train()")
    assert python.logged() == [(4, {"loss": 2.0}), (8, {"loss": 1.0})]


def test_keras_fit_reports_and_evaluate_does_not(python: Job) -> None:
    python.library("keras.src.callbacks.callback_list", KERAS)
    python.run(FIT)
    assert python.logged() == [(7, {"batch/loss": 2.0}), (7, {"loss": 1.0, "val_loss": 1.5})]


@pytest.mark.parametrize("name", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning_trainer_reports_metrics(python: Job, name: str) -> None:
    python.library(f"{name}.trainer.trainer", LIGHTNING)
    python.run(f"from {name}.trainer.trainer import Trainer; Trainer().fit()")
    assert [step for step, _ in python.logged()] == [1, 1, 1, 2, 2]
    assert python.logged()[-1] == (2, {"train_loss": 1.0})


@pytest.mark.parametrize("module", ["tqdm", "tqdm.auto"])
@pytest.mark.parametrize("values", ["loss='0.250', what='x'", "{'loss': 0.25, 'what': 'x'}"])
def test_progress_bar_numbers_are_reported_unless_program_logs(
    python: Job, module: str, values: str
) -> None:
    code = (
        f"from {module} import tqdm; bar = tqdm(range(2)); bar.set_postfix({values}); bar.close()"
    )
    shown = python.run(code).stderr
    assert "loss=0.25" in shown
    assert "what=x" in shown
    assert python.logged() == [(None, {"loss": 0.25})]
    python.file.unlink()
    python.run(f"import benchpool; benchpool.log(loss=1, step=3); {code}")
    assert python.logged() == [(3, {"loss": 1.0})]


def test_hooks_are_disabled_by_environment(python: Job) -> None:
    python.library("transformers.trainer", TRANSFORMERS)
    code = "from transformers.trainer import Trainer; Trainer().train()"
    for chosen in ("none", "keras,tqdm", ""):
        python.run(code, BENCHPOOL_HOOKS=chosen)
        assert python.logged() == []
    python.run(code, BENCHPOOL_METRICS_FILE="")
    python.run(code, BENCHPOOL_HOOKS="transformers")
    assert len(python.logged()) == 2


def test_changed_library_runs_with_one_warning(python: Job) -> None:
    python.library("transformers.trainer", CHANGED)
    done = python.run("from transformers.trainer import Trainer; print(Trainer.__name__)")
    assert done.stdout == "Trainer\n"
    assert done.stderr.startswith("benchpool: transformers reports no metrics (AttributeError")
    assert len(done.stderr.splitlines()) == 1


def test_failed_listener_stays_silent(python: Job) -> None:
    python.library("transformers.trainer", TRANSFORMERS.replace("is_world_process_zero, ", "a, "))
    done = python.run(
        "from transformers.trainer import Trainer; Trainer().train(); print('trained')"
    )
    assert (done.stdout, done.stderr) == ("trained\n", "")
    assert python.logged() == []


def test_other_sitecustomize_runs_too(python: Job) -> None:
    python.library("sitecustomize", "import sys; sys.theirs = __name__")
    done = python.run("import sys, sitecustomize; print(sys.theirs, sitecustomize.__file__)")
    assert done.stdout == f"sitecustomize {python.libraries / 'sitecustomize.py'}\n"


def test_program_without_known_libraries_loads_no_hooks(python: Job) -> None:
    done = python.run("import sys; print([it for it in sys.modules if it.startswith('benchpool')])")
    assert done.stdout == "[]\n"
