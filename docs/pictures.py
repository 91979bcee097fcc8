"""Draws the real outcomes of ``docs/cases``: the pool before and after.

Each picture is an SVG of its own that is readable on light and dark pages. GPUs are squares in the
colour of the project that holds them; waiting jobs stand below. The product does not import this.
"""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchpool_scheduler import cli, simulation
from benchpool_scheduler.core.model import Activity, JobFacts, Project, Snapshot
from benchpool_scheduler.simulation import cases, divisions
from benchpool_scheduler.simulation.outcomes import try_case
from benchpool_scheduler.simulation.passes import Played
from benchpool_scheduler.simulation.report import SUPPORTED

CASES = Path(__file__).resolve().parent / "cases"
SHARES = CASES / "shares" / "surplus.yaml"

WEEK = (
    *("whatif", "--trace", "docs/cases/workload/week.csv", "--gpus", "8"),
    *("--quotas", "docs/cases/workload/quotas.csv"),
    *("--config", "docs/cases/workload/quotas.yaml"),
)
"""What-if over a recorded week for a page."""

WIDTH, MARGIN, GAP = 640, 14, 16
SQUARE, STEP, ROW = 26, 29, 36
CHIP, LINE = 22, 27
LANE = 32
LABEL = 26
"""Measures of the picture, its margins, GPUs, nodes, jobs, lanes and node names, in pixels."""

COLOURS = ("#56b4e9", "#e69f00", "#2fb58a", "#d68fb8", "#b9a4f5", "#e5d84a")
"""Colours of the projects; black text has a contrast of at least 7 on all of them."""

STYLE = """
  .card { fill: #ffffff; stroke: #c9ced6 }
  text { font: 12px system-ui, sans-serif; fill: #1c2024 }
  .quiet { fill: #596270 }
  .head { font-weight: 600 }
  .free { fill: none; stroke: #a3abb8; stroke-dasharray: 3 2 }
  .on { fill: #000000; font-size: 11px; text-anchor: middle }
  .long { font-size: 9px }
  .chip { fill: none; stroke-width: 1.5 }
  .paid { stroke: #c62828; stroke-width: 2; stroke-dasharray: 4 2 }
  .bad { fill: #b71c1c }
  .arrow { stroke: #596270; stroke-width: 1.5; fill: none }
  .line { stroke: #c9ced6 }
  @media (prefers-color-scheme: dark) {
    .card { fill: #1a1d21; stroke: #3d444d }
    text { fill: #e6e9ed }
    .quiet { fill: #a3adba }
    .free { stroke: #66707d }
    .on { fill: #000000 }
    .paid { stroke: #ff8a80 }
    .bad { fill: #ff8a80 }
    .arrow { stroke: #a3adba }
    .line { stroke: #3d444d }
  }
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """Half of a picture: a pool at rest.

    Attributes:
        marks: Words beside the names of some jobs, such as ``paused``.
    """

    heading: str
    snapshot: Snapshot
    marks: Mapping[str, str]

    @property
    def happened(self) -> str:
        """Return the actions on the jobs that hold GPUs."""
        holding = {job.id for job in self.snapshot.jobs if job.held}
        words: dict[str, list[str]] = {}
        for job, mark in self.marks.items():
            if job in holding:
                words.setdefault(mark, []).append(job)
        return "; ".join(f"{mark}: {', '.join(jobs)}" for mark, jobs in words.items())


def pictures() -> Mapping[str, str]:
    """Return all pictures by file name."""
    found: dict[str, str] = {}
    for path in sorted(CASES.glob("*.yaml")):
        for case in cases.load(path, SUPPORTED):
            found[f"{case.name}.svg"] = picture(case)
    for division in divisions.load(SHARES):
        found[f"share-{division.name}.svg"] = bars(division)
    found["on-kubernetes.svg"] = lanes("A gang of two workers on a cluster", LANES, GANG)
    return found


LANES = ("benchpool", "API server", "Kubernetes", "worker pods")
GANG = (
    (0, 0, "the core chooses a node for every worker"),
    (0, 1, "Job, gates closed"),
    (1, 2, "Job controller"),
    (2, 3, "two pods, pending"),
    (0, 1, "pin and open each"),
    (1, 2, "kube-scheduler binds"),
    (2, 3, "kubelets start them"),
    (3, 0, "agents fetch the bundle, send log and progress"),
    (0, 0, "another job needs GPUs: preempt this one"),
    (0, 3, "notice by long polling: save within 30 s"),
    (3, 1, "exit code and reason, in the pod's status"),
    (1, 0, "GPUs are free"),
)
"""Messages between lanes, in order; a message from a lane to itself is a local step."""


def lanes(title: str, heads: Sequence[str], steps: Sequence[tuple[int, int, str]]) -> str:
    """Return a sequence diagram of these messages, from top to bottom."""
    wide = (WIDTH - 2 * MARGIN) // len(heads)
    middles = [MARGIN + wide // 2 + wide * number for number in range(len(heads))]
    height = MARGIN + LABEL + LANE * len(steps) + MARGIN
    parts = []
    for middle, head in zip(middles, heads, strict=True):
        parts.append(_text(middle - int(3.4 * len(head)), MARGIN + 12, head, "head"))
        parts.append(f'<path class="line" d="M{middle} {MARGIN + 20}V{height - MARGIN}"/>')
    for number, (begin, end, words) in enumerate(steps):
        y = MARGIN + LABEL + LANE * number + LANE - 8
        left, right = sorted((middles[begin], middles[end]))
        if begin == end:
            parts.append(f'<circle cx="{left}" cy="{y - 6}" r="4" fill="{COLOURS[0]}"/>')
            parts.append(_text(left + 10, y - 2, words))
            continue
        tip = (middles[end], -6 if begin < end else 6)
        parts.append(f'<path class="arrow" d="M{left} {y}H{right}"/>')
        parts.append(f'<path class="arrow" d="M{tip[0] + tip[1]} {y - 4}L{tip[0]} {y}')
        parts[-1] += f'L{tip[0] + tip[1]} {y + 4}"/>'
        parts.append(_text(left + 8, y - 5, words))
    description = "; ".join(
        words if begin == end else f"{heads[begin]} to {heads[end]}: {words}"
        for begin, end, words in steps
    )
    return _svg(height, title, description, parts)


def printed() -> Mapping[str, str]:
    """Return the output of ``benchpool simulate --explain`` for each case, by file name."""
    found: dict[str, str] = {}
    for path in (*sorted(CASES.glob("*.yaml")), SHARES):
        option = "--shares" if path == SHARES else "--explain"
        lines = [f"$ benchpool simulate {option} docs/cases/{path.relative_to(CASES)}"]
        if path == SHARES:
            simulation.run_shares([path], echo=lines.append)
        else:
            simulation.run([path], explain=True, echo=lines.append)
        found[f"{path.stem}.txt"] = "\n".join(lines) + "\n"
    return found | {"whatif-week.txt": _in_the_terminal(*WEEK)}


def _in_the_terminal(*words: str) -> str:
    """Return a command as typed in the project's folder, and its output."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.chdir(CASES.parents[1]):
        cli.run(words, {}, Path())
    return f"$ benchpool {' '.join(words)}\n{output.getvalue()}"


def picture(case: cases.Case) -> str:
    """Return the pool of a case before and after its passes.

    Raises:
        ValueError: The case does not hold, so the picture would be wrong.
    """
    outcome = try_case(case)
    if outcome.result != "ok" or case.snapshot is None or outcome.played is None:
        raise ValueError(f"{case.name}: {outcome.result} {outcome.differences}")
    played = outcome.played
    panels = (
        Panel("before", case.snapshot, _marks_before(case.snapshot)),
        Panel("after", played.snapshot, _marks_after(case.snapshot, played)),
    )
    colours = _colours(case.snapshot.projects)
    width = (WIDTH - 2 * MARGIN - 3 * GAP) // 2
    parts, top = _legend(case.snapshot, colours)
    bottoms = []
    for panel, x in zip(panels, (MARGIN, MARGIN + width + 3 * GAP), strict=True):
        drawn, bottom = _panel(panel, x, top, width, colours)
        parts += drawn
        bottoms.append(bottom)
    middle, y = MARGIN + width + GAP // 2, top + 40
    parts.append(f'<path class="arrow" d="M{middle} {y}h26m-7 -6l7 6l-7 6"/>')
    return _svg(max(bottoms) + MARGIN, case.name, _outcome(played), parts)


def bars(division: divisions.Division) -> str:
    """Return the division of a pool as bars: quota, part of the surplus, and demand."""
    divided = divisions.check(division)
    if divided.differences:
        raise ValueError(f"{division.name}: {divided.differences}")
    most = max(sibling.demand for sibling in division.siblings)
    left, unit = MARGIN + 74, (WIDTH - 2 * MARGIN - 330) / most
    parts = [_text(MARGIN, MARGIN + 14, f"{division.total} GPUs to divide", "head")]
    y = MARGIN + LABEL
    for name, demand, colour in zip(division.names, division.siblings, COLOURS, strict=False):
        share = divided.shares[name]
        quota = min(demand.quota or 0, demand.most)
        for start, length, opacity in ((0, quota, 1.0), (quota, share - quota, 0.55)):
            if length > 0:
                parts.append(
                    f'<rect x="{left + start * unit:.1f}" y="{y}" width="{length * unit:.1f}" '
                    f'height="{SQUARE}" fill="{colour}" fill-opacity="{opacity}"/>'
                )
        parts.append(
            f'<rect class="free" x="{left}" y="{y}" width="{demand.demand * unit:.1f}" '
            f'height="{SQUARE}"/>'
        )
        parts.append(_text(MARGIN, y + 18, name))
        facts = f"quota {demand.quota}, weight {demand.weight:g}, asks {demand.demand}"
        facts += f", priority {demand.priority}" if demand.priority else ""
        parts.append(_text(left + int(most * unit) + 10, y + 12, f"fair share {share}", "head"))
        parts.append(_text(left + int(most * unit) + 10, y + 26, facts, "quiet"))
        y += ROW
    description = ", ".join(f"{name} {share}" for name, share in divided.shares.items())
    return _svg(y + MARGIN // 2, division.name, f"Fair shares: {description}.", parts)


# --------------------------------------------------------------------------- words


def _marks_before(snapshot: Snapshot) -> Mapping[str, str]:
    return {job.id: "leaving" for job in snapshot.jobs if job.activity is Activity.TERMINATING}


def _marks_after(before: Snapshot, played: Played) -> Mapping[str, str]:
    marks = dict(_marks_before(before))
    for then, job in zip(before.jobs, played.snapshot.jobs, strict=True):
        if job.id in played.preempted:
            marks[job.id] = "shrunk" if job.held else "paused"
        elif job.id in played.moved:
            marks[job.id] = "moved"
        elif job.held and not then.held:
            marks[job.id] = "started"
        elif job.is_nominated:
            marks[job.id] = "promised"
    return marks


def _outcome(played: Played) -> str:
    """Return the outcome in words, for readers who cannot see the picture."""
    names = {
        "runs": [j.id for j in played.snapshot.jobs if j.activity is Activity.RUNNING],
        "waits": [j.id for j in played.snapshot.jobs if j.activity is Activity.QUEUED],
        "was paused or shrunk": sorted(played.preempted),
        "moved": sorted(played.moved),
    }
    return "; ".join(f"{what}: {', '.join(who)}" for what, who in names.items() if who)


def _colours(projects: Sequence[Project]) -> Mapping[str, str]:
    parents = {project.parent for project in projects}
    leaves = [str(project.name) for project in projects if project.name not in parents]
    return dict(zip(leaves, itertools.cycle(COLOURS), strict=False))


# --------------------------------------------------------------------------- shapes


def _legend(snapshot: Snapshot, colours: Mapping[str, str]) -> tuple[list[str], int]:
    """Return the legend of the projects, and the position of the panels below it."""
    parents = {p.parent for p in snapshot.projects if p.name in colours}
    parts, x, y = [], MARGIN, MARGIN
    for project in snapshot.projects:
        if project.name not in colours:
            continue
        words = f"{project.name}: quota {project.quota}"
        words += "" if project.weight is None else f", weight {project.weight:g}"
        words += "" if project.limit is None else f", limit {project.limit}"
        words += f", in {project.parent}" if len(parents) > 1 else ""
        wide = 20 + int(6.6 * len(words)) + GAP
        if x > MARGIN and x + wide > WIDTH:
            x, y = MARGIN, y + 20
        box = f'x="{x}" y="{y}" width="14" height="14" rx="3"'
        parts.append(f'<rect {box} fill="{colours[project.name]}"/>')
        parts.append(_text(x + 20, y + 12, words))
        x += wide
    return parts, y + LABEL + GAP


def _panel(
    panel: Panel, x: int, y: int, width: int, colours: Mapping[str, str]
) -> tuple[list[str], int]:
    """Return the drawing of one half, and its lower end."""
    parts = [_text(x, y + 12, panel.heading, "head")]
    y += LABEL
    holders = {
        gpu: job for job in panel.snapshot.jobs for worker in job.held for gpu in worker.gpus
    }
    per_line = max(1, (width - LABEL) // STEP)
    for node in panel.snapshot.nodes:
        parts.append(_text(x, y + 17, node.name, "quiet"))
        for index, gpu in enumerate(node.gpus):
            at = (x + LABEL + index % per_line * STEP, y + index // per_line * STEP)
            parts += _gpu(at, holders.get(gpu), panel, colours)
        y += ROW + (len(node.gpus) - 1) // per_line * STEP
    waiting = [job for job in panel.snapshot.jobs if job.activity is Activity.QUEUED]
    if waiting:
        parts.append(f'<path class="line" d="M{x} {y}h{width}"/>')
        parts.append(_text(x, y + 19, "waits", "quiet"))
        drawn, y = _queue(waiting, x + 42, y + 6, x + width, panel, colours)
        parts += drawn
    if panel.happened:
        parts.append(_text(x, y + 14, panel.happened, "quiet"))
        y += LINE - 4
    return parts, y


def _gpu(
    at: tuple[int, int], job: JobFacts | None, panel: Panel, colours: Mapping[str, str]
) -> Iterator[str]:
    x, y = at
    box = f'x="{x}" y="{y}" width="{SQUARE}" height="{SQUARE}" rx="4"'
    if job is None:
        yield f'<rect class="free" {box}/>'
        return
    faded = ' fill-opacity="0.5"' if job.activity is Activity.TERMINATING else ""
    paid = ' class="paid"' if panel.marks.get(job.id) == "leaving" else ""
    yield f'<rect {box} fill="{colours[job.project]}"{faded}{paid}/>'
    kind = "on" if not faded else ""
    middle = ' style="text-anchor: middle; font-size: 11px"' if faded else ""
    name = escape(str(job.id)[:4])
    kind += " long" if len(name) > 3 else ""
    yield f'<text class="{kind}"{middle} x="{x + SQUARE // 2}" y="{y + 17}">{name}</text>'


def _queue(
    waiting: Sequence[JobFacts],
    x: int,
    y: int,
    right: int,
    panel: Panel,
    colours: Mapping[str, str],
) -> tuple[list[str], int]:
    parts, left = [], x
    for job in waiting:
        mark = panel.marks.get(job.id)
        size = f"{job.spec.workers}×{job.spec.gpus}" if job.spec.workers > 1 else str(job.spec.gpus)
        words = f"{job.id}: {size} GPUs" if size != "1" else f"{job.id}: 1 GPU"
        words += "" if mark is None else f", {mark}"
        wide = 12 + int(7 * len(words))
        if x > left and x + wide > right:
            x, y = left, y + LINE
        paid = " paid" if mark == "paused" else ""
        parts.append(
            f'<rect class="chip{paid}" x="{x}" y="{y}" width="{wide}" height="{CHIP}" rx="6" '
            f'stroke="{colours[job.project]}"/>'
        )
        parts.append(_text(x + 6, y + 15, words, "bad" if paid else ""))
        x += wide + 6
    return parts, y + LINE


def _text(x: int, y: int, words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}">{escape(words)}</text>'


def _svg(height: int, title: str, description: str, parts: Sequence[str]) -> str:
    body = "\n".join(f"  {part}" for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img">\n'
        f"  <title>{escape(title)}</title>\n  <desc>{escape(description)}</desc>\n"
        f"  <style>{STYLE}  </style>\n"
        f'  <rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>\n'
        f"{body}\n</svg>\n"
    )
