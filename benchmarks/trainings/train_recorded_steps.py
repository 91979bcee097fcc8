"""A training that records each start, step and end in one file, for ``sweep_preemptions.py``.

``train_recorded_steps.py RATE FILE STEPS STEP_S``. A line of the file: the time, the attempt, an
event (``start``, ``step``, ``end``) and its value. The value of a start is the number of saved
checkpoints, that of a step its number, and that of the end the result.
"""

import os
import pathlib
import random
import sys
import time

from benchpool import checkpoint, log

rate, file, steps, step_s = float(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])


def record(event, value):
    """Add a line; a line is written whole."""
    attempt = os.environ["BENCHPOOL_ATTEMPT"]
    with open(file, "a") as lines:
        lines.write(f"{time.time()} {attempt} {event} {value}\n")


saved = pathlib.Path(os.environ["BENCHPOOL_CHECKPOINT_DIR"])
record("start", sum(1 for _ in saved.glob("*")) if saved.exists() else 0)
random.seed(1)
model = {"weight": 0.0}
for step in checkpoint.loop(range(steps), model=model):
    model["weight"] = model["weight"] * 0.9 + rate * random.random()
    log(weight=model["weight"], step=step)
    record("step", step)
    time.sleep(step_s)
record("end", repr(model["weight"]))
