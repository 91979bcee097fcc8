"""Command line of the runner."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchpool.runner import filling, interpreter, reading
from benchpool.runner.frozen import frozen, sources_of
from benchpool.runner.notebook import NotebookRun
from benchpool.runner.overlay import overlaid

CANNOT_START = 2
MANY = (
    "benchpool: some of your own modules exceed the limits for sent copies (300 files, 8 MiB "
    "in total, 1 MiB each, UTF-8): the job imports their current versions"
)


def main(words: Sequence[str]) -> int:
    """Run the command given by the words and return the exit status."""
    options = _parser().parse_args(words)
    output = Path(options.output or os.environ.get("BENCHPOOL_OUTPUT_DIR") or ".")
    try:
        kernel = interpreter.probe(options.interpreter)
        notebook = filling.filled(reading.read(Path(options.notebook)), options.values)
    except interpreter.CannotStart as why:
        print(f"benchpool: {why}", flush=True)
        return CANNOT_START
    sent = notebook.metadata.get("benchpool")
    sent = sent if isinstance(sent, dict) else {}
    modules = sources_of(sent)
    sent.pop("modules", None)  # the executed copy contains only the cells
    packages = sent.pop("overlay", None)
    name = _name(options.name or Path(options.notebook).name, os.environ.get("NODE_RANK", "0"))
    output.mkdir(parents=True, exist_ok=True)
    run = NotebookRun(
        notebook,
        kernel,
        folder=Path(options.cwd).absolute(),
        copy=output.absolute() / name,
        modules=modules,
    )
    if sent.pop("modules_left", 0):
        print(MANY, flush=True)
    try:
        with overlaid(packages, kernel), interpreter.with_our_package(kernel), frozen(modules):
            return asyncio.run(run.run())
    except interpreter.CannotStart as why:
        print(f"benchpool: {why}", flush=True)
        return CANNOT_START


def _name(name: str, worker: str) -> str:
    """Return the file name of the copy: each worker of a gang has a separate one.

    >>> _name("book.ipynb", "0"), _name("book.ipynb", "2")
    ('book.ipynb', 'book.worker-2.ipynb')
    """
    if worker == "0" or not worker.isdecimal():
        return name
    return f"{Path(name).stem}.worker-{worker}{Path(name).suffix}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchpool.runner", allow_abbrev=False)
    kinds = parser.add_subparsers(required=True)
    notebook = kinds.add_parser("notebook", allow_abbrev=False, help="run all cells of a notebook")
    notebook.add_argument("--notebook", required=True, help="the file to run")
    notebook.add_argument(
        "--name", help="file name of the executed copy (default: that of the file)"
    )
    notebook.add_argument("--interpreter", default=sys.executable, help="Python of the kernel")
    notebook.add_argument("--cwd", default=".", help="folder that the cells run in")
    notebook.add_argument("--values", help="values of its parameters, as JSON")
    notebook.add_argument(
        "--output", help="folder of the executed copy (default: BENCHPOOL_OUTPUT_DIR)"
    )
    return parser
