"""The code offered for a loop over plain numbers and arrays resumes it exactly.

Each program is rewritten with the code of the dialog, paused after some turns and run again. It
must print what the unchanged program prints.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchpool import checkpoint_detection, resume_offers

LINE = """\
import random
random.seed(0)
points = [(x / 50, 3 * x / 50 + 1 + random.gauss(0, 0.1)) for x in range(100)]
lr = 0.1
w = b = 0.0
losses = []
for step in range(20):
    errors = [(x, w * x + b - y) for x, y in points]
    w -= lr * sum(2 * e * x for x, e in errors) / len(points)
    b -= lr * sum(2 * e for _, e in errors) / len(points)
    losses.append(sum(e * e for _, e in errors))
print(w, b, losses)
"""
NETWORK = """\
import numpy as np
rng = np.random.default_rng(0)
X = np.linspace(-1, 1, 40).reshape(20, 2)
y = np.sin(X[:, :1])
W1, W2 = np.ones((2, 4)) * 0.1, np.ones((4, 1)) * 0.2
best, history = np.inf, {}
for epoch in range(15):
    order = rng.permutation(20)
    hidden = np.tanh(X[order] @ W1)
    error = hidden @ W2 - y[order]
    W2 -= 0.1 * hidden.T @ error / 20
    W1 -= 0.1 * X[order].T @ (error @ W2.T * (1 - hidden**2)) / 20
    loss = float((error**2).mean())
    if loss < best:
        best = loss
    history.update({epoch: loss})
print(W1.tolist(), W2.tolist(), best, history)
"""
FUNCTION = """\
import numpy as np

def descend(rate, turns=25):
    theta, velocity = np.array([4.0, -3.0]), np.zeros(2)
    seen = 0
    for t in range(turns):
        gradient = 2 * theta + np.random.normal(size=2)
        velocity = 0.9 * velocity - rate * gradient
        theta = theta + velocity
        for each in theta:
            if each > 3:
                break
            seen += 1
    return theta, seen

np.random.seed(1)
theta, seen = descend(0.05)
print(theta.tolist(), seen)
"""
ITEMS = """\
import numpy as np
np.random.seed(3)
table = np.zeros((4, 2))
visits = [0, 0, 0, 0]
state = 0
for episode in range(12):
    action = np.random.randint(2)
    after = (state + action + 1) % 4
    table[state, action] += 0.5 * (after + 0.9 * table[after].max() - table[state, action])
    visits[state] += 1
    state = after
print(table.tolist(), visits, state)
"""
BY_A_FUNCTION = """\
import random

def shift(weights, by):
    weights[0] += by
    weights[1] -= by

random.seed(2)
weights = [1.0, 2.0]
total = 0.0
for kept in range(9):
    shift(weights, random.random())
    total += weights[0]
print(weights, total)
"""
PROGRAMS = {
    "line": LINE,
    "network": NETWORK,
    "in a function": FUNCTION,
    "items": ITEMS,
    "changed by a function": BY_A_FUNCTION,
}
PAUSES = "from pathlib import Path; import os\nTURNS = iter(range(1000))\n"
PAUSE = "if next(TURNS) == {turn}: Path(os.environ['BENCHPOOL_NOTICE_FILE']).write_text('{{}}')"


def rewritten(source: str, turn: int) -> str:
    """Return the program with the offered code instead of its own loop, paused in a turn."""
    offered = ast.parse(checkpoint_detection.detect([source]).lines)
    imported, made, loop, *after = offered.body
    assert isinstance(loop, ast.For)
    program = ast.parse(source)
    place, number, old = next(
        (block, at, each)
        for node in ast.walk(program)
        for block in [getattr(node, "body", None)]
        if isinstance(block, list)
        for at, each in enumerate(block)
        if isinstance(each, ast.For) and ast.dump(each.target) == ast.dump(loop.target)
    )
    own = next(at for at, each in enumerate(loop.body) if ast.unparse(each) == "...")
    loop.body[own : own + 1] = [*old.body, *ast.parse(PAUSE.format(turn=turn)).body]
    place[number : number + 1] = [made, loop, *after]
    return f"{ast.unparse(imported)}\n{PAUSES}{ast.unparse(ast.fix_missing_locations(program))}"


def run(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    (folder / "checkpoints").mkdir(exist_ok=True)
    notice = folder / "notice"
    notice.unlink(missing_ok=True)
    where = {
        "BENCHPOOL_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "BENCHPOOL_NOTICE_FILE": str(notice),
        "BENCHPOOL_JOB_ID": "j" * 26,
    }
    return subprocess.run(
        [sys.executable, "-c", source],
        env={**os.environ, **where},
        cwd=folder,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("turn", [0, 7])
@pytest.mark.parametrize("name", PROGRAMS)
def test_offered_code_keeps_result_across_pause(name: str, turn: int, tmp_path: Path) -> None:
    source = PROGRAMS[name]
    alone = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    paused = run(rewritten(source, turn), tmp_path)
    assert paused.returncode == 75, paused.stderr
    assert paused.stdout == ""
    again = run(rewritten(source, 999), tmp_path)
    assert again.returncode == 0, again.stderr
    assert f"resumes after {turn + 1} of" in again.stderr
    assert again.stdout == alone.stdout


@pytest.mark.parametrize(
    "why_not",
    [
        "w = 0.0\nfor x in data:\n    if x: continue\n    w += x\n",
        "w = 0.0\nfor x in data:\n    w += x\n    if w > 3: break\n",
        "w = load()\nfor x in data:\n    w += x\n",
        "env, w = gym.make('x'), 0.0\nfor x in range(3):\n    w += env.step(x)\n",
        "w = 0.0\nfor x in data:\n    w += x\n    thing.total = w\n",
        "def learn(model):\n    n = 0\n    for x in range(3):\n        n = max(n, model.fit(x))\n",
        "with open('log') as log:\n    n = 0\n    for x in data:\n        n += log.write(x)\n",
        "for x in data:\n    print(x)\n",
    ],
)
def test_unclear_changes_get_general_code(
    why_not: str,
) -> None:
    found = checkpoint_detection.detect([why_not])
    assert found.lines == resume_offers.ANY
    assert found.text.endswith("with all names that it changes, resumes where it stopped:")
