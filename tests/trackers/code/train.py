"""Training that logs each step to trackers, with nothing in it for pauses but its checkpoints.

``train.py [OPTION...] TRACKER...``: attempt N stops after step N * TURN, when the pool asks it to
pause. The attempt after the last pause reaches the end.
"""

from __future__ import annotations

import argparse
import os
import signal
import threading
from collections.abc import Callable
from importlib import import_module

from benchpool import checkpoint

TURN = 5
"""Steps of an attempt."""
Log = Callable[[int, float], object]


def mlflow(name: str | None) -> Log:
    """Log to MLflow, whose run begins with its first value."""
    library = import_module("mlflow")
    if name:
        library.start_run(run_name=name)
    return lambda step, loss: library.log_metric("loss", loss, step=step)


def wandb(name: str | None) -> Log:
    """Log to W&B."""
    run = import_module("wandb").init(project="tests", name=name)
    return lambda step, loss: run.log({"loss": loss}, step=step)


def trackio(name: str | None) -> Log:
    """Log to Trackio."""
    run = import_module("trackio").init("tests", name=name, embed=False)
    return lambda step, loss: run.log({"loss": loss}, step=step)


def tensorboard(name: str | None) -> Log:
    """Log to event files in the folder that transformers' Trainer also takes, or with torch."""
    try:
        writer = import_module("torch.utils.tensorboard").SummaryWriter(name)
        return lambda step, loss: writer.add_scalar("loss", loss, step)
    except ImportError:
        event, summary = (
            import_module(f"tensorboard.compat.proto.{kind}_pb2") for kind in ("event", "summary")
        )
        folder = name or os.environ["TENSORBOARD_LOGGING_DIR"]
        files = import_module("tensorboard.summary.writer.event_file_writer").EventFileWriter(
            folder
        )

        def log(step: int, loss: float) -> None:
            value = summary.Summary.Value(tag="loss", simple_value=loss)
            files.add_event(event.Event(step=step, summary=summary.Summary(value=[value])))
            files.flush()

        return log


def wait_for_stop() -> None:
    """Wait until the pool asks this process to stop."""
    while not checkpoint.should_stop():
        threading.Event().wait(0.02)


def first_step() -> int:
    """Return the step at which this attempt begins."""
    saved = checkpoint.latest()
    return int((saved / "step").read_text()) if saved else 0


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pauses", type=int, default=5)
    options.add_argument("--back", type=int, default=0, help="steps that each resume repeats")
    options.add_argument("--killed", action="store_true", help="ends itself after TURN steps")
    options.add_argument("--name", help="of the runs; by default the program names none")
    options.add_argument("--others", nargs="*", default=[], help="trackers of the other workers")
    options.add_argument("--trackers", nargs="+", required=True)
    return options.parse_args()


def main() -> None:
    """Train."""
    chosen = read_options()
    own = chosen.trackers if os.environ["NODE_RANK"] == "0" else chosen.others
    logs = [globals()[each](chosen.name) for each in own]
    attempt, step = int(os.environ["BENCHPOOL_ATTEMPT"]), first_step()
    while step < (chosen.pauses + 1) * TURN:
        for log in logs:
            log(step, 1 / (step + 1))
        step += 1
        print(f"attempt {attempt} has done {step} steps", flush=True)
        if chosen.killed and step == TURN:
            os.kill(os.getpid(), signal.SIGKILL)
        if step == attempt * TURN and attempt <= chosen.pauses:
            wait_for_stop()
            with checkpoint.commit(step) as folder:
                (folder / "step").write_text(str(step - chosen.back))
            raise SystemExit(75)


if __name__ == "__main__":
    main()
