"""Print the results of ``benchpool bench time admissions``."""

from __future__ import annotations

import json as codec
from collections.abc import Callable
from dataclasses import asdict

from benchpool_scheduler.admissions.driving import ClockName, drive
from benchpool_scheduler.admissions.figures import Figures
from benchpool_scheduler.admissions.mixes import MIXES, Mix, PolicyName

Echo = Callable[[str], object]


def run(
    mix: str,
    clock: ClockName,
    policy: PolicyName,
    *,
    json: bool = False,
    echo: Echo = print,
) -> int:
    """Run a mix and print its figures beside the published ones; return the exit status."""
    figures = drive(MIXES[mix], clock, policy)
    if json:
        echo(codec.dumps(as_json(figures, MIXES[mix]), indent=2))
    else:
        for line in table(figures, MIXES[mix]):
            echo(line)
    return 0


def as_json(figures: Figures, mix: Mix) -> dict[str, object]:
    """Return the figures, with Kueue's under ``kueue``."""
    return {**asdict(figures), "kueue": asdict(mix.kueue)}


def table(figures: Figures, mix: Mix) -> list[str]:
    """Return a line for each figure: its name, ours, Kueue's, a zero-latency ideal."""
    kueue, ours = mix.kueue, figures
    ideal = f"{kueue.ideal_s:g}"
    if kueue.ideal_restarting_s is not None:
        ideal += f" ({kueue.ideal_restarting_s:g} with restarts)"
    rows = [
        ("", "benchpool", "Kueue", "ideal"),
        ("wall time, s", f"{ours.wall_s:.1f}", f"{kueue.wall_s:g}", ""),
        ("processor time, s", f"{ours.cpu_s:.1f}", "", ""),
        ("makespan on this clock, s", f"{ours.makespan_s:.1f}", f"{kueue.wall_s:g}", ideal),
        ("admissions/s", f"{ours.admissions_per_s:.1f}", f"{kueue.per_s:g}", ""),
        *(
            (f"mean time to the latest admission, {name}, s", f"{seconds:.3f}",
             f"{kueue.latency_s[name]:g}" if name in kueue.latency_s else "", "")
            for name, seconds in ours.latency_s.items()
        ),
        ("useful utilisation", f"{ours.useful_utilisation:.1%}", "", ""),
        ("evictions", str(ours.evictions), "", ""),
        ("peak memory, MiB", f"{ours.peak_rss_mib:.0f}", "", ""),
    ]  # fmt: skip
    heading = (
        f"mix {ours.mix}: {ours.jobs} jobs, {ours.units} units, {ours.clock} clock, "
        f"policy {ours.policy}"
    )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return [heading, *(_aligned(row, widths) for row in rows)]


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    first, *rest = row
    cells = [text.rjust(width) for text, width in zip(rest, widths[1:], strict=True)]
    return "  ".join([first.ljust(widths[0]), *cells]).rstrip()
