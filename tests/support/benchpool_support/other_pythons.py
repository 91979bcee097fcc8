"""Python environments without benchpool, for kernels and jobs."""

from __future__ import annotations

import json
import venv
from pathlib import Path

import nbformat


def other_python(folder: Path, *, with_kernel: bool) -> str:
    """Create another interpreter, without benchpool, and return its path."""
    venv.create(folder, with_pip=False)
    if with_kernel:
        (site,) = (folder / "lib").glob("python3*/site-packages")
        ours = Path(nbformat.__file__).parents[1]
        (site / "ours.pth").write_text(f"{ours}\n")  # a nested .pth file is not followed
    return str(folder / "bin" / "python")


def add_kernel(data: Path, name: str, python: str) -> None:
    """Add a kernel of this interpreter to a Jupyter data folder."""
    folder = data / "kernels" / name
    folder.mkdir(parents=True)
    words = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": words, "display_name": name, "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
