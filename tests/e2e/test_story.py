"""The story of the tutorial: Susan borrows, gives back, and finishes as if nothing had happened."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from benchpool_scheduler.testing.people import PATIENCE_MS, Person

pytestmark = pytest.mark.e2e

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

SCRIPT = """\
import sys, time
from benchpool import checkpoint
print("working with", sys.argv[1:], flush=True)
while not checkpoint.should_stop():
    time.sleep(0.05)
raise SystemExit(0)
"""


def write_notebook(path: Path, cells: list[str]) -> None:
    """Write a notebook with a title and these code cells."""
    notebook = nbformat.v4.new_notebook(
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
    path.write_text(nbformat.writes(notebook))


def uninterrupted(folder: Path) -> str:
    """Run the same code outside the pool; return what it prints as its result."""
    program = folder / "uninterrupted.py"
    program.write_text("\n\n".join([IMPORTS, DATA, MODEL, TRAIN, SENT]))
    ran = subprocess.run(
        [sys.executable, str(program)], cwd=folder, check=True, capture_output=True, text=True
    )
    found = re.search(r"result [0-9a-f]{16}", ran.stdout)
    assert found, ran.stdout
    return found[0]


def begin(person: Person) -> Person:
    """Log in and start a notebook server with the one GPU of the bench."""
    person.log_in()
    person.start_server(1)
    return person


def test_susan_borrows_gives_back_and_finishes_with_the_result_of_an_uninterrupted_run(
    person: Callable[..., Person], tmp_path: Path
) -> None:
    expected = uninterrupted(tmp_path)
    susan, joe, jemma = person("susan"), person("joe"), person("jemma")
    write_notebook(susan.home / "train.ipynb", [IMPORTS, DATA, MODEL, TRAIN, TRY, SENT])
    (susan.home / "busy").touch()
    for other in (joe, jemma):
        (other.home / "use_two.py").write_text(SCRIPT)

    # Susan opens a notebook on her bench GPU and works in cells.
    susan.log_in()
    susan.open_start_form()
    expect(susan.page.get_by_text("build quota").first).to_be_visible()
    susan.look("start-form")
    susan.start_server(1)
    susan.open_file("train.ipynb")
    susan.wait_for_kernel()
    for number in range(1, 6):
        susan.run_cell(number)
    expect(susan.cell(5).locator(".jp-OutputArea-output")).to_contain_text("loss after one step")

    # She sends the training cell with four GPUs: two within her quota, two over it.
    susan.select_cell(6)
    susan.press_send_button()
    susan.choose_gpus(4)
    expect(susan.dialog).to_contain_text("2 over")
    expect(susan.dialog.get_by_test_id("benchpool-simulated")).to_be_visible()
    susan.look("send-dialog")
    susan.send()
    expect(susan.badge(6)).to_have_attribute("data-state", "running", timeout=PATIENCE_MS)
    susan.open_panel()
    susan.expect_state("train", "running")
    susan.look("running-over-quota")

    # Joe takes the two free GPUs; Jemma asks for her guarantee, and Susan's surplus goes back.
    begin(joe).open_panel()
    joe.send_file("use_two.py", gpus=2)
    joe.expect_state("use_two", "running")
    susan.expect_state("train", "running")
    begin(jemma).open_panel()
    jemma.send_file("use_two.py", gpus=2)
    jemma.expect_state("use_two", "running")
    susan.expect_state("train", "queued")
    details = susan.open_row("train")
    expect(details.get_by_test_id("benchpool-reason")).to_contain_text(re.compile(r"\d"))
    expect(details.get_by_test_id("benchpool-preemptions")).to_contain_text("jemma")
    expect(details).to_contain_text("saved at step")
    susan.look("paused-for-jemma")

    # Her notebook was never touched: the same kernel still has her names.
    susan.run_cell(5)
    expect(susan.cell(5).locator(".jp-InputPrompt")).to_have_text("[6]:")

    # Room returns; the job resumes from its checkpoint by itself and finishes.
    (susan.home / "busy").unlink()
    jemma.cancel("use_two")
    susan.expect_state("train", "succeeded")
    details = susan.open_row("train")
    expect(details.get_by_test_id("benchpool-attempts").locator("li")).to_have_count(2)
    expect(details).to_contain_text("resumed at step")
    expect(details).to_contain_text(expected)
    susan.look("finished")

    # The executed copy opens, and its files lie where the notebook can open them.
    details.get_by_test_id("benchpool-open-result").click()
    expect(susan.notebook.locator(".jp-OutputArea-output", has_text=expected)).to_be_visible()
    susan.look("executed-copy")
    assert list(susan.home.glob("benchpool-results/*/weights.npy"))
    joe.cancel("use_two")
