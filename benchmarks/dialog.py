"""Waiting time for the dialog of *Send to training*.

``python benchmarks/dialog.py [--cells 25 100 200] [--runs 15]``: the dialog's request to a real
notebook server with a real pool. It sends the last cell of a notebook in which every cell uses the
one before it, so that all cells are included.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import checkout  # noqa: F401
from tables import Figure, show

from benchpool_support.dialog import body, made
from benchpool_support.notebook_server import NotebookServer, notebook_server
from benchpool_support.serving import served


def asked(server: NotebookServer, cells: int, runs: int) -> Figure:
    """Request the dialog ``runs`` times; the first answer is left out."""
    pattern = body()["cells"][1]
    chain = [
        {**pattern, "id": f"c{n}", "source": f"v{n} = [v{n - 1}]" if n else "v0 = 1"}
        for n in range(cells)
    ]
    chain[-1]["selected"] = True
    taken = []
    for _ in range(runs + 1):
        began = time.perf_counter()
        answer = made(server.page.post("benchpool/prepare", json=body(cells=chain)))
        taken.append((time.perf_counter() - began) * 1000)
        if not all(each["included"] for each in answer["cells"]):
            raise SystemExit(f"of {cells} cells some would not go along: {answer}")
    return Figure(f"dialog for a notebook of {cells} cells", "ms", tuple(taken[1:]))


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cells", type=int, nargs="+", default=[25, 100, 200])
    options.add_argument("--runs", type=int, default=15)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder) / "pool") as pool:
        environ = {"BENCHPOOL_URL": pool.url, "JUPYTERHUB_API_TOKEN": "susan"}
        with notebook_server(Path(folder) / "server", environ) as server:
            show(
                "The dialog that sends",
                [asked(server, cells, chosen.runs) for cells in chosen.cells],
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
