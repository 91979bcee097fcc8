"""A notebook job from its runner's view: the folders of a worker, and the runner as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import nbformat


@dataclass
class NotebookJob:
    """Folders of a job as the pool creates them, and its runs."""

    root: Path
    metadata: dict[str, object] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    book: object = None
    """Content of the notebook file, instead of a notebook made from cells."""

    @property
    def copy(self) -> Path:
        return self.root / "output" / "book.ipynb"

    def texts(self, index: int) -> str:
        """Return the printed text of a cell of the executed copy."""
        book = nbformat.read(self.copy, as_version=4)
        return "".join(each.get("text", "") for each in book.cells[index].outputs)

    def start(
        self, *cells: str, attempt: int = 1, interpreter: str = sys.executable
    ) -> subprocess.Popen[str]:
        folder = self.root / "work"
        for each in ("work", "output", "checkpoint"):
            (self.root / each).mkdir(exist_ok=True)
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(each) for each in cells])
        if self.metadata:
            book.metadata["benchpool"] = dict(self.metadata)
        nbformat.write(book, self.root / "object")
        if self.book is not None:
            (self.root / "object").write_text(json.dumps(self.book))
        env = {key: value for key, value in os.environ.items() if "BENCHPOOL" not in key}
        for name in ("checkpoint", "output"):
            env[f"BENCHPOOL_{name.upper()}_DIR"] = str(self.root / name)
        for name in ("notice", "progress"):
            env[f"BENCHPOOL_{name.upper()}_FILE"] = str(self.root / f"{name}.json")
        (self.root / "notice.json").unlink(missing_ok=True)
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "benchpool.runner", "notebook"),
                *("--notebook", str(self.root / "object"), "--name", "book.ipynb"),
                *("--interpreter", interpreter, "--cwd", str(folder)),
                *("--output", str(self.root / "output")),
            ],
            cwd=folder,
            env={**env, "BENCHPOOL_ATTEMPT": str(attempt), **self.variables},
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *cells: str, interpreter: str = sys.executable) -> tuple[int, str]:
        """Run to the end and return exit status and log."""
        with self.running(*cells, interpreter=interpreter) as worker:
            log, _ = worker.communicate(timeout=120)
            return worker.returncode, log

    @contextmanager
    def running(
        self, *cells: str, attempt: int = 1, interpreter: str = sys.executable
    ) -> Iterator[subprocess.Popen[str]]:
        worker = self.start(*cells, attempt=attempt, interpreter=interpreter)
        try:
            yield worker
        finally:
            if worker.poll() is None:
                worker.kill()
            worker.wait()
            assert worker.stdout is not None
            worker.stdout.close()

    def notice(self) -> None:
        (self.root / "notice.json").write_text(json.dumps({"kind": "pause"}))


def read_until(worker: subprocess.Popen[str], text: str) -> str:
    """Read the log until a line contains ``text`` and return that line."""
    assert worker.stdout is not None
    for line in worker.stdout:
        if text in line:
            return line
    raise AssertionError(f"the log ended before {text!r}")
