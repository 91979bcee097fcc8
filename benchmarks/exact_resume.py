"""Check that a training with many pauses ends exactly as one without.

``python benchmarks/exact_resume.py --python PYTHON [--training loop ddp] [--pauses 10]``: a small
network with dropout and Adam is trained on shuffled batches, 60 an epoch, once without a pause and
once with pauses at random moments, or after the steps of ``--at``. Each loss and each weight is
compared bit by bit, including steps that were done twice. PYTHON is an interpreter with torch and
the imports of the training; this one by default.

The trainings are those of ``benchmarks/trainings``: by ``checkpoint.loop`` (``loop``; ``sampler``
with a sampler of its own; ``ddp`` on two processes), by the callbacks for Hugging Face's Trainer,
Lightning and Keras, and ``by_hand``, the baseline: it saves model, optimizer, schedule and step,
and no random states. The exit status is 1 if any training but the baseline is not exact.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import checkout
from tables import machine

ROOT = checkout.TESTS.parent
BASELINE = "by_hand"
TRAININGS = ("loop", "sampler", "ddp", "huggingface", "lightning", "keras", BASELINE)
STEPS_OF_AN_EPOCH = 60
PAUSED = 75
"""Exit status of a paused training."""


@dataclass
class ReportedProgress:
    """Reports of a training's attempts: losses by step, weights, steps done twice, versions."""

    losses: dict[int, str] = field(default_factory=dict)
    weights: str = ""
    again: int = 0
    versions: str = ""

    def read(self, line: str) -> None:
        """Read one line."""
        kind, _, value = line.strip().partition(" ")
        if kind == "weights":
            self.weights = value
        if kind == "versions":
            self.versions = value
        if kind == "loss":
            step, loss = value.split()
            self.again += int(step) in self.losses
            self.losses[int(step)] = loss


@dataclass(frozen=True)
class Comparison:
    """Training with pauses, compared with the same one without."""

    training: str
    pauses: int
    steps: int
    whole: ReportedProgress
    paused: ReportedProgress

    @property
    def equal(self) -> int:
        """Number of steps whose losses are equal."""
        return sum(self.paused.losses.get(at) == loss for at, loss in self.whole.losses.items())

    @property
    def same_weights(self) -> bool:
        """Whether the final weights are bit-identical."""
        return bool(self.whole.weights) and self.whole.weights == self.paused.weights

    @property
    def exact(self) -> bool:
        """Whether all losses and weights are equal."""
        return self.same_weights and self.equal == len(self.whole.losses) == self.steps

    def row(self) -> str:
        """Return the row of the table."""
        weights = "bit-identical" if self.same_weights else "different"
        return (
            f"| `{self.training}` | {self.pauses} | {self.equal} of {self.steps} | {weights} "
            f"| {self.paused.again} | {self.whole.versions} |"
        )


def attempt(command: Sequence[str], environ: dict[str, str], progress: ReportedProgress) -> int:
    """Run a training until it ends or is paused; return its exit status."""
    worker = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    for line in worker.stdout or ():
        progress.read(line)
    return worker.wait()


def compared(training: str, moments: Sequence[int], chosen: argparse.Namespace) -> Comparison:
    """Run a training without pauses, and with pauses after these steps.

    Raises:
        SystemExit: It did not end as paused after a step, or did not end.
    """
    command = [chosen.python, str(ROOT / f"benchmarks/trainings/train_{training}.py")]
    whole, paused = ReportedProgress(), ReportedProgress()
    with tempfile.TemporaryDirectory() as folder:
        plain = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "extension"),
            "TRAINING_DEVICE": chosen.device,
            "TRAINING_EPOCHS": str(chosen.epochs),
            "TRAINING_FOLDER": f"{folder}/whole",
        }
        job = {
            **plain,
            "TRAINING_FOLDER": f"{folder}/paused",
            "BENCHPOOL_NOTICE_FILE": f"{folder}/notice",
            "BENCHPOOL_CHECKPOINT_DIR": f"{folder}/checkpoint",
        }
        statuses = [(0, attempt(command, plain, whole))]
        for moment in moments:
            pausing = {**job, "TRAINING_PAUSE_AFTER": str(moment)}
            statuses.append((PAUSED, attempt(command, pausing, paused)))
            Path(job["BENCHPOOL_NOTICE_FILE"]).unlink(missing_ok=True)
        statuses.append((0, attempt(command, job, paused)))
    for number, (wanted, status) in enumerate(statuses):
        if status != wanted:
            raise SystemExit(f"{training}: attempt {number} ended with {status}, not {wanted}.")
    return Comparison(training, len(moments), chosen.epochs * STEPS_OF_AN_EPOCH, whole, paused)


def main() -> int:
    """Compare each training and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--training", choices=TRAININGS, nargs="+", default=["loop", BASELINE])
    options.add_argument("--epochs", type=int, default=10, help="of 60 steps each")
    options.add_argument("--pauses", type=int, default=10)
    options.add_argument("--at", type=int, nargs="*", help="pause after these steps")
    options.add_argument("--device", default="cpu", help="of the training *loop*: cpu or cuda")
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--seed", type=int, default=1, help="of the random moments")
    chosen = options.parse_args()
    steps = range(1, chosen.epochs * STEPS_OF_AN_EPOCH)
    moments = chosen.at or sorted(random.Random(chosen.seed).sample(steps, chosen.pauses))
    print(f"{machine()}\n\npaused after steps {', '.join(map(str, moments))}\n")
    print("| training | pauses | losses equal | weights | steps done twice | versions |")
    print("|---|---|---|---|---|---|", flush=True)
    exact = True
    for training in chosen.training:
        found = compared(training, moments, chosen)
        print(found.row(), flush=True)
        exact &= found.exact or training == BASELINE
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
