"""The charts of the page Fleet: the strip of today, and the last hour's grid.

A cell of the grid has a colour for its activity and letters for the holder of the GPU. It has a
pattern where the GPU was held and idle. Its text has the same information.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.cells import GpuCell
from benchpool_scheduler.accounting.classes import HELD, TITLES, GpuUseKind, computed_part
from benchpool_scheduler.accounting.gpu_intervals import GpuHolder
from benchpool_scheduler.contract import GpuState, Status
from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.contract.use import UseClass
from benchpool_scheduler.service.administration.fleet import DayOfUse, HourGrid, HourOfUse
from benchpool_scheduler.telemetry.live import IDLE_SHARE
from benchpool_scheduler.web.words import GPU_WORDS, Moment, StateWord, moment

LEVELS = (0.25, 0.5, 0.75)
"""Upper bounds of the colours of activity."""

LONGEST_LETTERS = 3

UNHELD: Mapping[GpuUseKind, tuple[str, str]] = {
    GpuUseKind.PREPARING: ("starting", "starting"),
    GpuUseKind.RESERVED: ("reserved", "kept free for benches"),
    GpuUseKind.WANTED: ("free-wanted", "free though wanted"),
    GpuUseKind.FREE: ("free", "free"),
    GpuUseKind.FOREIGN: ("foreign", "used by others"),
    GpuUseKind.BROKEN: ("broken", "broken or closed"),
    GpuUseKind.UNRECORDED: ("not-recorded", "not recorded"),
}
"""Style and text of a cell without a bench or running worker."""

SIGNS: Mapping[str, str] = {"foreign": "×", "broken": "!"}


@dataclass(frozen=True, slots=True)
class CellView:
    """One GPU in one step: ``letters`` of its holder, ``words`` that describe it."""

    style: str
    letters: str
    words: str


@dataclass(frozen=True, slots=True)
class GridRow:
    """One GPU; ``now`` is its current state, ``job`` the ID of its job."""

    uuid: str
    index: int
    job: str
    now: str
    cells: tuple[CellView, ...]


@dataclass(frozen=True, slots=True)
class GridNode:
    """The GPUs of one node."""

    name: str
    model: str
    rows: tuple[GridRow, ...]


@dataclass(frozen=True, slots=True)
class GridView:
    """The grid: ``owners`` have letters in it, ``begins`` are the times of the columns."""

    nodes: tuple[GridNode, ...]
    begins: tuple[Moment, ...]
    owners: tuple[tuple[str, str], ...]
    simulated: bool


@dataclass(frozen=True, slots=True)
class HourColumn:
    """One hour of the strip: its parts from the bottom, in pixels of a chart ``STRIP_PX`` high."""

    x: str
    width: str
    title: str
    parts: tuple[HourPart, ...]


@dataclass(frozen=True, slots=True)
class HourPart:
    """One class of an hour."""

    style: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class HourRow:
    """One hour of the table: GPU-hours of the classes of that day."""

    begin: str
    hours: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NowPart:
    """GPUs in one state now: their number, and their part of the bar."""

    word: StateWord
    gpus: int
    x: str
    width: str


@dataclass(frozen=True, slots=True)
class NowView:
    """All GPUs now; ``active`` is the number of held GPUs that compute."""

    gpus: int
    parts: tuple[NowPart, ...]
    active: str
    active_part: str


STRIP_PX = 120.0


def now_view(status: Status, uses: Iterable[GpuUse]) -> NowView:
    """Return the strip of the present."""
    total = sum(status.counts.values())
    held = {gpu.uuid for gpu in status.gpus if gpu.state in HELD_STATES}
    known = [it.activity for it in uses if it.uuid in held and it.activity is not None]
    active = sum(one > IDLE_SHARE for one in known)
    words = f"{active} of {phrases.count(len(known), 'held GPU')} {phrases.is_are(active)} active"
    return NowView(
        gpus=total,
        parts=tuple(_now_parts(status.counts, total)),
        active=words if known else _why_none(status),
        active_part=phrases.share(active / len(known)) if known else "",
    )


def _why_none(status: Status) -> str:
    held = sum(status.counts.get(state, 0) for state in HELD_STATES)
    return "The activity of held GPUs is not measured." if held else "No GPU is held."


HELD_STATES = frozenset(
    {GpuState.TRAIN_WITHIN_QUOTA, GpuState.TRAIN_OVER_QUOTA, GpuState.BUILD_HELD}
)


def _now_parts(counts: Mapping[GpuState, int], total: int) -> Iterator[NowPart]:
    at = 0
    for state, word in GPU_WORDS.items():
        gpus = counts.get(state, 0)
        if gpus:
            yield NowPart(word, gpus, f"{at / total:.3%}", f"{gpus / total:.3%}")
        at += gpus


def columns(day: DayOfUse) -> Sequence[HourColumn]:
    """Return the hours of the strip; the tallest has the height of the chart."""
    most = max((sum(one.row.gpu_h.values()) for one in day.hours), default=0.0)
    if most <= 0:
        return ()
    width = 1 / len(day.hours)
    return [
        HourColumn(
            x=f"{width * number:.3%}",
            width=f"{width * 0.88:.3%}",
            title=f"{one.begin:%H:%M}: {_hour_words(one.row.gpu_h)}",
            parts=tuple(_column_parts(one.row.gpu_h, most)),
        )
        for number, one in enumerate(day.hours)
    ]


def _column_parts(gpu_h: Mapping[UseClass, float], most: float) -> Iterator[HourPart]:
    foot = STRIP_PX
    for one in UseClass:
        height = gpu_h.get(one, 0.0) / most * STRIP_PX
        if height >= 0.25:
            yield HourPart(one.value, round(foot - height, 2), round(height, 2))
        foot -= height


def _hour_words(gpu_h: Mapping[UseClass, float]) -> str:
    whole = sum(gpu_h.values())
    parts = [
        f"{TITLES[one]} {phrases.share(hours / whole)}"
        for one in UseClass
        if whole > 0 and (hours := gpu_h.get(one, 0.0)) / whole >= 0.005
    ]
    return ", ".join(parts) or "nothing is recorded"


def hour_rows(day: DayOfUse) -> Sequence[HourRow]:
    """Return the hours of the table, the newest first."""
    shown = [one for one in UseClass if day.total.gpu_h.get(one, 0.0) > 0]
    return [
        HourRow(
            f"{one.begin:%Y-%m-%d %H:%M}",
            tuple(phrases.gpu_hours(one.row.gpu_h.get(each, 0.0)) for each in shown),
        )
        for one in reversed(day.hours)
    ]


@dataclass(frozen=True, slots=True)
class WeekRow:
    """One hour of the chart: GPUs held, computing, and free with demand; None if not recorded."""

    at: int
    begin: str
    values: tuple[float | None, ...]


def week_rows(hours: Sequence[HourOfUse]) -> Sequence[WeekRow]:
    """Return the completed hours, the newest first; none where nothing is recorded."""
    rows = [
        WeekRow(int(one.begin.timestamp()), f"{one.begin:%Y-%m-%d %H:%M}", tuple(_means(one)))
        for one in reversed(hours[:-1])
    ]
    return rows if any(None not in row.values for row in rows) else ()


def _means(hour: HourOfUse) -> Iterator[float | None]:
    """Yield mean GPUs of an hour: GPU-hours of one hour."""
    gpu_h = hour.row.gpu_h
    known = sum(gpu_h.values()) - gpu_h.get(UseClass.NOT_RECORDED, 0.0) > 0
    computing, wanted = gpu_h.get(UseClass.COMPUTING, 0.0), gpu_h.get(UseClass.WANTED, 0.0)
    for gpus in (hour.row.held_gpu_h, computing, wanted):
        yield round(gpus, 1) if known else None


def computed(day: DayOfUse) -> tuple[str, str]:
    """Return the computing share of the held time with its label, or why it is unknown."""
    part = computed_part(day.total.gpu_h)
    if part is not None:
        return phrases.share(part), "of held and measured GPU time was computing"
    held = any(day.total.gpu_h.get(one, 0.0) > 0 for one in HELD)
    return "", "The activity of held GPUs was not measured." if held else "No GPU was held."


def grid_view(grid: HourGrid, gpus: Sequence[GpuUse], now: datetime) -> GridView:
    """Return the grid of the present GPUs, by node and index."""
    names = {it.occupant.user for row in grid.cells.values() for it in row if it.occupant}
    letters = letters_of(name for name in names if name)
    begins = [moment(datetime.fromtimestamp(at, UTC), now) for at in grid.begins]
    nodes: dict[str, list[GpuUse]] = {}
    for gpu in gpus:
        nodes.setdefault(gpu.node, []).append(gpu)
    return GridView(
        nodes=tuple(
            GridNode(
                name,
                ", ".join(dict.fromkeys(gpu.model for gpu in here)),
                tuple(_row(gpu, grid, letters) for gpu in sorted(here, key=lambda it: it.index)),
            )
            for name, here in sorted(nodes.items())
        ),
        begins=tuple(begins),
        owners=tuple(sorted((short, name) for name, short in letters.items())),
        simulated=any(gpu.simulated for gpu in gpus),
    )


def _row(gpu: GpuUse, grid: HourGrid, letters: Mapping[str, str]) -> GridRow:
    row = grid.cells.get(gpu.uuid) or [GpuCell(at, None, None, False) for at in grid.begins]
    found = tuple(_cell(cell, letters) for cell in row)
    return GridRow(gpu.uuid, gpu.index, gpu.job or "", _now(gpu), found)


def _now(gpu: GpuUse) -> str:
    """Return the current state of a GPU in words."""
    facts = [f"GPU {gpu.index}"]
    if gpu.activity is not None:
        facts.append(f"{phrases.percent(gpu.activity)} active")
    if gpu.memory_used_gib is not None and gpu.memory_total_gib is not None:
        facts.append(f"{gpu.memory_used_gib:.0f}/{gpu.memory_total_gib:.0f} GB")
    if gpu.user is not None:
        facts.append(gpu.user)
    return " · ".join(facts)


def _cell(cell: GpuCell, letters: Mapping[str, str]) -> CellView:
    who = cell.occupant
    if who is None:
        return CellView("not-recorded", "", "not recorded")
    if who.occupation in UNHELD:
        style, words = UNHELD[who.occupation]
        return CellView(style, SIGNS.get(style, letters.get(who.user, "")), _label(who, words))
    bench = who.occupation is GpuUseKind.BENCH
    if cell.activity is None:
        style, words = "not-measured", "not measured"
    elif cell.activity <= IDLE_SHARE:
        style, words = f"idle-{'bench' if bench else 'training'}", "idle"
    else:
        style = f"active-{1 + sum(cell.activity > level for level in LEVELS)}"
        words = f"{phrases.percent(cell.activity)} active"
    return CellView(style, letters.get(who.user, ""), _label(who, words))


def _label(who: GpuHolder, words: str) -> str:
    kind = {GpuUseKind.BENCH: "bench", GpuUseKind.TRAINING: "training"}.get(who.occupation, "")
    owner = " ".join(part for part in (who.user, kind) if part)
    return f"{owner}: {words}" if owner else words


def letters_of(names: Iterable[str]) -> dict[str, str]:
    """Return for each name its shortest unique prefix, or its first letter with a number.

    >>> letters_of(["joe", "jemma", "susan"])
    {'jemma': 'Je', 'joe': 'Jo', 'susan': 'S'}
    >>> letters_of(["guest-1", "guest-2"])
    {'guest-1': 'G1', 'guest-2': 'G2'}
    """
    found: dict[str, str] = {}
    known = sorted(set(names))
    for name in known:
        others = [one.casefold() for one in known if one != name]
        short = next(
            (
                name[:length]
                for length in range(1, LONGEST_LETTERS + 1)
                if not any(one.startswith(name[:length].casefold()) for one in others)
            ),
            "",
        )
        found[name] = short[:1].upper() + short[1:]
    numbers: dict[str, int] = {}
    for name in (one for one in known if not found[one]):
        first = name[:1].upper()
        numbers[first] = numbers.get(first, 0) + 1
        found[name] = f"{first}{numbers[first]}"
    return found
