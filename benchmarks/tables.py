"""Tables of figures with the machine's name, for every benchmark here."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """Measured quantity: its runs in one unit."""

    what: str
    unit: str
    runs: tuple[float, ...]

    def row(self) -> str:
        """Return the figure's row: runs, minimum, median, maximum."""
        values = (min(self.runs), statistics.median(self.runs), max(self.runs))
        cells = " | ".join(f"{value:.3g}" for value in values)
        return f"| {self.what} | {len(self.runs)} | {cells} | {self.unit} |"


def machine() -> str:
    """Return a description of the machine."""
    model = "unknown processor"
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{platform.node()}: {os.cpu_count()} cores, {model}, Python {platform.python_version()}"


def show(title: str, figures: Sequence[Figure]) -> None:
    """Print a table."""
    print(f"\n### {title}\n\n{machine()}\n")
    print("| what | runs | min | median | max | unit |\n|---|---|---|---|---|---|")
    for figure in figures:
        print(figure.row())
