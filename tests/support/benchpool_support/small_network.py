"""A small network that is trained in cells, for the notebooks of the tests' users.

It saves, resumes and prints its result as a digest of all weights, so that a paused run can be
compared with an undisturbed one. Every list of code is a cell. The arithmetic is plain Python,
because a numeric library may round differently in another environment.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import nbformat

IMPORTS = """\
import hashlib
import json
import math
import os
import random
import time
from pathlib import Path

from benchpool import checkpoint"""
DATA = """\
rng = random.Random(7)
inputs = [[rng.gauss(0, 1) for _ in range(8)] for _ in range(256)]
targets = [math.sin(sum(row)) for row in inputs]"""
MODEL = """\
def improve(weights, rate=0.05):
    moved, squares = list(weights), 0.0
    for row, target in zip(inputs, targets):
        guess = math.tanh(sum(weight * value for weight, value in zip(weights, row)))
        slope = (guess - target) * (1 - guess**2) / len(inputs)
        moved = [weight - rate * slope * value for weight, value in zip(moved, row)]
        squares += (guess - target) ** 2
    return moved, squares / len(inputs)


def gpu_is_busy(step):
    # Stands for the time that a step takes on a GPU; the test holds it half-way.
    time.sleep(0.01)
    while step == 200 and Path(".busy").exists() and not checkpoint.should_stop():
        time.sleep(0.02)"""
TRAIN = """\
def train(steps):
    weights, first = [0.0] * 8, 0
    saved = checkpoint.latest()
    if saved is not None:
        weights, first = json.loads((saved / "state.json").read_text())
        print(f"resumed at step {first}", flush=True)
    for step in range(first, steps):
        gpu_is_busy(step)
        if checkpoint.should_stop() or step % 50 == 0:
            with checkpoint.commit(step) as folder:
                (folder / "state.json").write_text(json.dumps([weights, step]))
            checkpoint.progress(step / steps, f"step {step}")
        if checkpoint.should_stop():
            print(f"saved at step {step}, pausing", flush=True)
            raise SystemExit(75)
        weights, loss = improve(weights)
    print(f"loss {loss:.4f}")
    return weights"""
TRY = """\
print("loss after one step:", improve([0.0] * 8)[1])"""
SENT = """\
weights = train(steps=400)
said = json.dumps(weights)
(Path(os.environ.get("BENCHPOOL_OUTPUT_DIR", ".")) / "weights.json").write_text(said)
print("result", hashlib.sha256(said.encode()).hexdigest()[:16])"""
ALONE = (IMPORTS, DATA, MODEL, TRAIN, TRY, SENT)
"""Notebook of one worker; the last cell is sent, and the one before it tries a step."""

MEETING = """\
from multiprocessing.connection import Client, Listener

rank, workers = int(os.environ.get("NODE_RANK", 0)), int(os.environ.get("NNODES", 1))


def meet():
    # Worker 0 waits at the door; only those who have the gang's key come in.
    if workers == 1:
        return []
    door = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    key = os.environ["BENCHPOOL_GANG_KEY"].encode()
    if rank == 0:
        with Listener(("", door[1]), authkey=key) as listener:
            return [listener.accept() for _ in range(1, workers)]
    while True:
        try:
            return [Client(door, authkey=key)]
        except OSError:
            time.sleep(0.1)


def column_sums(rows):
    return [sum(column) for column in zip(*rows)]


def add_up(peers, part):
    # The sums over all workers, number by number, the same on each.
    if rank > 0:
        peers[0].send(part)
        return peers[0].recv()
    total = column_sums([part, *(peer.recv() for peer in peers)])
    for peer in peers:
        peer.send(total)
    return total"""
HALVES = """\
def gradient(weights, half):
    mine, rows = slice(half * 128, half * 128 + 128), []
    for row, target in zip(inputs[mine], targets[mine]):
        guess = math.tanh(sum(weight * value for weight, value in zip(weights, row)))
        slope = (guess - target) * (1 - guess**2) / len(inputs)
        rows.append([slope * value for value in row])
    return column_sums(rows)


def gpu_is_busy(step):
    # Stands for the time that a step takes on a GPU; the first attempt is held half-way.
    time.sleep(0.01)
    held = rank == 0 and os.environ.get("BENCHPOOL_ATTEMPT") == "1" and step == 200
    while held and not checkpoint.should_stop():
        time.sleep(0.02)"""
TRAIN_TOGETHER = """\
def train(steps, rate=0.05):
    peers, weights, first = meet(), [0.0] * 8, 0
    print(f"worker {rank} of {workers} on {os.environ.get('CUDA_VISIBLE_DEVICES')}", flush=True)
    saved = checkpoint.latest()
    if saved is not None:
        weights, first = json.loads((saved / "state.json").read_text())
        print(f"resumed at step {first}", flush=True)
    for step in range(first, steps):
        gpu_is_busy(step)
        told = add_up(peers, [int(checkpoint.should_stop())])[0] > 0
        if told or step % 50 == 0:
            with checkpoint.commit(step) as folder:
                (folder / "state.json").write_text(json.dumps([weights, step]))
            checkpoint.progress(step / steps, f"step {step}")
        if told:
            print(f"saved at step {step}, pausing", flush=True)
            raise SystemExit(75)
        part = column_sums([gradient(weights, half) for half in range(rank, 2, workers)])
        slopes = add_up(peers, part)
        weights = [weight - rate * slope for weight, slope in zip(weights, slopes)]
    return weights"""
TRY_HALVES = """\
whole = column_sums([gradient([0.0] * 8, half) for half in (0, 1)])
print("steepest after no step:", max(whole, key=abs))"""
TOGETHER = (IMPORTS, MEETING, DATA, HALVES, TRAIN_TOGETHER, TRY_HALVES, SENT)
"""Notebook of a gang of one or two workers, each of which works on its part of the data."""

SCRIPT = """\
import sys, time
from benchpool import checkpoint
print("working with", sys.argv[1:], flush=True)
while not checkpoint.should_stop():
    time.sleep(0.05)
raise SystemExit(0)
"""


def notebook(cells: Sequence[str]) -> str:
    """Return a notebook with a title and these cells of code."""
    made = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {
                "name": "python3",
                "display_name": "Python 3 (ipykernel)",
                "language": "python",
            }
        },
        cells=[
            nbformat.v4.new_markdown_cell("# A small network"),
            *(nbformat.v4.new_code_cell(text) for text in cells),
        ],
    )
    return str(nbformat.writes(made))


def program(cells: Sequence[str]) -> str:
    """Return the same code as a script, without the cell that only tries a step."""
    return "\n\n".join([*cells[:-2], cells[-1]])


def result(printed: str) -> str:
    """Return the line with the result of a run.

    >>> result("loss 0.1\\nresult 0123456789abcdef\\n")
    'result 0123456789abcdef'
    """
    found = re.search(r"result [0-9a-f]{16}", printed)
    assert found, printed
    return found[0]
