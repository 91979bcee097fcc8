"""Show which metrics the trainers of real libraries report in a job without code for it.

``python benchmarks/real_trainers.py --python PYTHON [--library keras lightning]``: each program of
``benchmarks/trainers`` runs as in a job, with the hooks of the job's package on its path. PYTHON is
an interpreter with these libraries and torch; this one by default. The exit status is 1 if a
program failed, or reported nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import checkout
from tables import machine

from benchpool_scheduler.worker import job_package

TRAINERS = checkout.TESTS.parent / "benchmarks/trainers"
LIBRARIES = ("transformers", "keras", "lightning", "tqdm")


def reports(python: str, library: str) -> list[dict[str, Any]]:
    """Run a library's program in a job's environment and return the lines that it reported.

    Raises:
        SystemExit: The program failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package, file = folder / job_package.NAME, folder / "metrics.jsonl"
        job_package.write(package, job_package.content())
        variables = {
            "PYTHONPATH": str(package),
            "BENCHPOOL_METRICS_FILE": str(file),
            "TRAINING_FOLDER": str(folder / "out"),
        }
        program = [python, str(TRAINERS / f"run_{library}.py")]
        done = subprocess.run(
            program, env={**os.environ, **variables}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{library} failed:\n{done.stderr}")
        for line in done.stderr.splitlines():
            if line.startswith("benchpool:"):
                print(line, file=sys.stderr)
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]


def version(python: str, library: str) -> str:
    """Return the version of a library in an interpreter."""
    code = f"from importlib.metadata import version; print(version({library!r}))"
    done = subprocess.run([python, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def main() -> int:
    """Run each program and print a table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--library", choices=LIBRARIES, nargs="+", default=LIBRARIES)
    options.add_argument("--python", default=sys.executable)
    chosen = options.parse_args()
    print(
        f"{machine()}\n\n| library | version | reports | names | last step |\n|---|---|---|---|---|"
    )
    silent = False
    for library in chosen.library:
        found = reports(chosen.python, library)
        names = ", ".join(
            f"`{it}`" for it in dict.fromkeys(it for one in found for it in one["values"])
        )
        last = found[-1].get("step", "none") if found else "none"
        about = version(chosen.python, library)
        print(f"| {library} | {about} | {len(found)} | {names} | {last} |", flush=True)
        silent |= not names
    return int(silent)


if __name__ == "__main__":
    sys.exit(main())
