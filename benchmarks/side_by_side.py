"""Compare the decision core of this checkout with that of another commit, in turns.

``python benchmarks/side_by_side.py COMMIT [SHAPE:NODES ...] [--pairs N]``: both trees are written
beside each other. Each shape runs in a new process of the one, then of the other, then in reverse
order. The figures are processor time, so a busy machine changes little. The table shows the minimum
and the median of each side, and the median difference of the pairs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from core_shapes import WANTED
from tables import machine

PLACES = ("simulation/shapes", "measuring")
"""Places of the module that times a shape, in different commits, the newest first."""

PAIRS = 15

IN_PROCESSOR_TIME = """
import runpy, sys, time
time.perf_counter = time.process_time
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=False)
"""


@dataclass(frozen=True, slots=True)
class Tree:
    """Scheduler of one commit; ``module`` times one shape there."""

    folder: Path
    module: str

    def timed_ms(self, shape: str, nodes: int) -> tuple[float, float]:
        """Return the minimum and the median of at least five passes in a new process."""
        words = [sys.executable, "-c", IN_PROCESSOR_TIME, self.module, shape, str(nodes)]
        environment = os.environ | {"PYTHONPATH": str(self.folder)}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{shape} at {nodes:,} nodes failed in {self.folder}:\n{done.stderr}")
        row = json.loads(done.stdout)
        if not row["result"].startswith("ok"):
            sys.exit(f"{shape} at {nodes:,} nodes in {self.folder}: {row['result']}")
        return row["ms_min"], row["ms_median"]


@dataclass(frozen=True, slots=True)
class Held:
    """Shape on both sides: the minimum and the median of each run, pair by pair."""

    shape: str
    nodes: int
    before: tuple[tuple[float, float], ...]
    now: tuple[tuple[float, float], ...]

    def row(self) -> str:
        """Return the row of the table."""
        pairs = zip(self.before, self.now, strict=True)
        differ = statistics.median(now / was - 1 for (_, was), (_, now) in pairs)
        sides = [
            f"{min(least for least, _ in runs):,.1f} / "
            f"{statistics.median(median for _, median in runs):,.1f}"
            for runs in (self.before, self.now)
        ]
        cells = [f"`{self.shape}`", f"{self.nodes:,}", str(len(self.now)), *sides]
        return f"| {' | '.join([*cells, f'{differ * 100:+.1f} %'])} |"


def held(shape: str, nodes: int, before: Tree, now: Tree, pairs: int) -> Held:
    """Run a shape on both sides in turns."""
    found: dict[Tree, list[tuple[float, float]]] = {before: [], now: []}
    for number in range(pairs):
        for tree in (before, now) if number % 2 == 0 else (now, before):
            found[tree].append(tree.timed_ms(shape, nodes))
    return Held(shape, nodes, tuple(found[before]), tuple(found[now]))


def laid_out(commit: str, folder: Path) -> Tree:
    """Write the scheduler of a commit into a folder."""
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(
        ["git", "archive", commit, "scheduler"], cwd=root, capture_output=True, check=False
    )
    if done.returncode:
        sys.exit(f"{commit} cannot be read: {done.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return tree_in(folder / "scheduler", commit)


def tree_in(folder: Path, name: str) -> Tree:
    """Return the scheduler in a folder."""
    for place in PLACES:
        if (folder / "benchpool_scheduler" / place / "__main__.py").exists():
            return Tree(folder, f"benchpool_scheduler.{place.replace('/', '.')}")
    sys.exit(f"{name} has nothing that times shapes in a process of its own; take a later commit.")


def _shape(text: str) -> tuple[str, int]:
    shape, _, nodes = text.partition(":")
    if not nodes.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no shape and size, such as drain:1000")
    return shape, int(nodes)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("commit", help="the commit to hold this checkout against")
    options.add_argument("shapes", nargs="*", type=_shape, help="such as drain:1000; all without")
    options.add_argument("--pairs", type=int, default=PAIRS, help=f"of each shape ({PAIRS})")
    chosen = options.parse_args()
    shapes = chosen.shapes or [(one.shape, one.nodes) for one in WANTED]
    now = tree_in(Path(__file__).resolve().parents[1] / "scheduler", "this checkout")
    with tempfile.TemporaryDirectory() as folder:
        before = laid_out(chosen.commit, Path(folder))
        print(f"\n### Beside {chosen.commit}, processor time\n\n{machine()}\n")
        print(
            "| shape | nodes | pairs | before: least / median ms | now: least / median ms |", end=""
        )
        print(" median of the pairs |\n|---|---|---|---|---|---|")
        for shape, nodes in shapes:
            print(held(shape, nodes, before, now, chosen.pairs).row(), flush=True)


if __name__ == "__main__":
    main()
