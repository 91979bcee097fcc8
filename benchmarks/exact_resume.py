"""Check that a training with many pauses ends exactly as one without.

``python benchmarks/exact_resume.py [--training loop] [--pauses 10] [--python PYTHON]``: a small
network with dropout and Adam is trained on shuffled batches, 60 an epoch, once without a pause and
once with pauses at random moments, or after the steps of ``--at``. Each loss and each weight is
compared bit by bit, including steps that were done twice. The trainings are those of
``benchmarks/trainings``: by ``checkpoint.loop``, also on two processes (``ddp``), and by the
callbacks for Hugging Face's Trainer, Lightning and Keras. PYTHON is an interpreter with torch and
the imports of the training; this one by default.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import checkout
from tables import Figure, show

ROOT = checkout.TESTS.parent
TRAININGS = ("loop", "ddp", "huggingface", "lightning", "keras")
STEPS_OF_AN_EPOCH = 60


@dataclass
class ReportedProgress:
    """Reports of a training's attempts: losses by step, weights, steps done twice."""

    losses: dict[int, str] = field(default_factory=dict)
    weights: str = ""
    again: int = 0

    def read(self, line: str) -> None:
        """Read one line."""
        kind, _, value = line.strip().partition(" ")
        if kind == "weights":
            self.weights = value
        if kind == "loss":
            step, loss = value.split()
            self.again += int(step) in self.losses
            self.losses[int(step)] = loss


def attempt(command: list[str], environ: dict[str, str], progress: ReportedProgress) -> int:
    """Run a training until it ends or is paused; return its exit status."""
    worker = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    for line in worker.stdout or ():
        progress.read(line)
    return worker.wait()


def main() -> int:
    """Train twice, compare and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--training", choices=TRAININGS, default="loop")
    options.add_argument("--epochs", type=int, default=10, help="of 60 steps each")
    options.add_argument("--pauses", type=int, default=10)
    options.add_argument("--at", type=int, nargs="*", help="pause after these steps")
    options.add_argument("--device", default="cpu", help="of the training *loop*: cpu or cuda")
    options.add_argument("--python", default=sys.executable)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    steps = chosen.epochs * STEPS_OF_AN_EPOCH
    drawn = sorted(random.Random(chosen.seed).sample(range(1, steps), chosen.pauses))
    moments: list[int] = chosen.at or drawn
    command = [chosen.python, str(ROOT / f"benchmarks/trainings/train_{chosen.training}.py")]
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
        attempt(command, plain, whole)
        for moment in moments:
            status = attempt(command, {**job, "TRAINING_PAUSE_AFTER": str(moment)}, paused)
            if status != 75:
                raise SystemExit(f"paused after step {moment} it ended with {status}, not 75")
            Path(job["BENCHPOOL_NOTICE_FILE"]).unlink()
        attempt(command, job, paused)
    equal = sum(paused.losses.get(step) == loss for step, loss in whole.losses.items())
    same = bool(whole.weights) and whole.weights == paused.weights
    print(f"paused after steps {', '.join(map(str, moments))}")
    print(f"weights bit for bit the same: {'yes' if same else 'no'}")
    show(
        f"A training of {steps} steps by {chosen.training} with {len(moments)} pauses",
        [
            Figure(f"losses equal, of {len(whole.losses)}", "", (float(equal),)),
            Figure("steps done twice", "", (float(paused.again),)),
        ],
    )
    return 0 if same and equal == len(whole.losses) == steps else 1


if __name__ == "__main__":
    sys.exit(main())
