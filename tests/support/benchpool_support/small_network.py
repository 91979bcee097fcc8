"""A small network that is trained in cells: what people of the tests type into their notebooks.

It saves, resumes and says its result as a digest of all weights, so that a run that was paused can
be held against one that was not. Every list of code is a cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import nbformat

IMPORTS = """\
import hashlib
import os
import time
from pathlib import Path

import numpy as np

from benchpool import checkpoint"""
DATA = """\
rng = np.random.default_rng(7)
inputs = rng.normal(size=(256, 8))
targets = np.sin(inputs.sum(axis=1, keepdims=True))"""
MODEL = """\
def improve(weights, rate=0.05):
    guess = np.tanh(inputs @ weights)
    error = guess - targets
    gradient = inputs.T @ (error * (1 - guess**2)) / len(inputs)
    return weights - rate * gradient, float((error**2).mean())


def gpu_is_busy(step):
    # Stands for the time that a step takes on a GPU; the test holds it half-way.
    time.sleep(0.01)
    while step == 200 and Path("busy").exists() and not checkpoint.should_stop():
        time.sleep(0.02)"""
TRAIN = """\
def train(steps):
    weights, first = np.zeros((8, 1)), 0
    saved = checkpoint.latest()
    if saved is not None:
        weights, first = np.load(saved / "weights.npy"), int((saved / "step").read_text())
        print(f"resumed at step {first}", flush=True)
    for step in range(first, steps):
        gpu_is_busy(step)
        if checkpoint.should_stop() or step % 50 == 0:
            with checkpoint.commit(step) as folder:
                np.save(folder / "weights.npy", weights)
                (folder / "step").write_text(str(step))
            checkpoint.progress(step / steps, f"step {step}")
        if checkpoint.should_stop():
            print(f"saved at step {step}, pausing", flush=True)
            raise SystemExit(75)
        weights, loss = improve(weights)
    print(f"loss {loss:.4f}")
    return weights"""
TRY = """\
print("loss after one step:", improve(np.zeros((8, 1)))[1])"""
SENT = """\
weights = train(steps=400)
np.save(Path(os.environ.get("BENCHPOOL_OUTPUT_DIR", ".")) / "weights.npy", weights)
print("result", hashlib.sha256(weights.tobytes()).hexdigest()[:16])"""
ALONE = (IMPORTS, DATA, MODEL, TRAIN, TRY, SENT)
"""The notebook of one worker; the last cell is the one to send, the one before tries a step."""

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


def add_up(peers, part):
    # The sum over all workers, the same on each.
    if rank > 0:
        peers[0].send(part)
        return peers[0].recv()
    total = sum((peer.recv() for peer in peers), start=part)
    for peer in peers:
        peer.send(total)
    return total"""
HALVES = """\
def gradient(weights, half):
    mine = slice(half * 128, half * 128 + 128)
    guess = np.tanh(inputs[mine] @ weights)
    error = guess - targets[mine]
    return inputs[mine].T @ (error * (1 - guess**2)) / len(inputs)


def gpu_is_busy(step):
    # Stands for the time that a step takes on a GPU; the first attempt is held half-way.
    time.sleep(0.01)
    held = rank == 0 and os.environ.get("BENCHPOOL_ATTEMPT") == "1" and step == 200
    while held and not checkpoint.should_stop():
        time.sleep(0.02)"""
TRAIN_TOGETHER = """\
def train(steps, rate=0.05):
    peers, weights, first = meet(), np.zeros((8, 1)), 0
    print(f"worker {rank} of {workers} on {os.environ.get('CUDA_VISIBLE_DEVICES')}", flush=True)
    saved = checkpoint.latest()
    if saved is not None:
        weights, first = np.load(saved / "weights.npy"), int((saved / "step").read_text())
        print(f"resumed at step {first}", flush=True)
    for step in range(first, steps):
        gpu_is_busy(step)
        told = add_up(peers, int(checkpoint.should_stop())) > 0
        if told or step % 50 == 0:
            with checkpoint.commit(step) as folder:
                np.save(folder / "weights.npy", weights)
                (folder / "step").write_text(str(step))
            checkpoint.progress(step / steps, f"step {step}")
        if told:
            print(f"saved at step {step}, pausing", flush=True)
            raise SystemExit(75)
        part = sum(gradient(weights, half) for half in range(rank, 2, workers))
        weights = weights - rate * add_up(peers, part)
    return weights"""
TRY_HALVES = """\
whole = sum(gradient(np.zeros((8, 1)), half) for half in (0, 1))
print("steepest after no step:", abs(whole).max())"""
TOGETHER = (IMPORTS, MEETING, DATA, HALVES, TRAIN_TOGETHER, TRY_HALVES, SENT)
"""The notebook of a gang of one or two workers: each works on its part of the data."""

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
    """Return the same as a script, without the cell that only tries a step."""
    return "\n\n".join([*cells[:-2], cells[-1]])


def result(printed: str) -> str:
    """Return the line by which a run says its result.

    >>> result("loss 0.1\\nresult 0123456789abcdef\\n")
    'result 0123456789abcdef'
    """
    found = re.search(r"result [0-9a-f]{16}", printed)
    assert found, printed
    return found[0]
