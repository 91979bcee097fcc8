"""``benchpool report``: shows the use of GPU-hours in a time range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from benchpool_scheduler import phrases
from benchpool_scheduler.accounting.classes import HELD, TITLES
from benchpool_scheduler.accounting.tables import as_csv
from benchpool_scheduler.cli import entry, words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, option
from benchpool_scheduler.contract.use import UseBy, UseClass, UseReport, UseRow
from benchpool_scheduler.errors import InvalidInput

CLASS_COLUMNS = (
    Column("CLASS", width=24),
    Column("GPU-HOURS", align="right"),
    Column("PART", align="right"),
)

SUMS: Sequence[tuple[str, Sequence[UseClass]]] = (
    ("HELD", HELD),
    ("BUSY", (UseClass.COMPUTING,)),
    ("IDLE", (UseClass.IDLE_BENCH, UseClass.IDLE_TRAINING)),
    ("LOST", (UseClass.LOST,)),
)
"""Columns of hours, with their classes. ``--csv`` has one column per class."""

UNHELD = tuple(one for one in UseClass if one not in HELD)
"""Classes that no user held: a column for nodes and models, a sentence for users and projects."""

PEOPLE = (UseBy.USER, UseBy.PROJECT)

NAME_WIDTH = 14
"""Width of names, in characters. A row then fits 80 columns with the cost and hours of a month."""

SHARE_COLUMNS = (Column("PROJECT", width=24), Column("STATIC SHARE", align="right"))


def _enough(session: Session, options: Options) -> int:
    answer = session.client.enough(days=options["enough"])
    if session.screen.json:
        session.screen.value(answer)
        return 0
    session.screen.heading(words.clean(answer.text))
    session.screen.table(SHARE_COLUMNS, [(one.name, str(one.gpus)) for one in answer.projects])
    session.screen.line(
        f"Enough means that 95 % of the jobs wait at most {phrases.duration(answer.wait_s)}, "
        "including pauses and restarts."
    )
    return 0


def _report(session: Session, options: Options) -> int:
    if options["enough"] is not None:
        return _enough(session, options)
    if options["month"] and (options["begin"] or options["end"]):
        raise InvalidInput("Give --month, or --from and --to, not both.", field="month")
    now = datetime.now(UTC)
    answer = session.client.report(
        by=UseBy(options["by"]),
        begin=entry.instant(options["begin"], now, "from"),
        end=entry.instant(options["end"], now, "to"),
        month=options["month"],
    )
    if options["csv"]:
        session.screen.bytes(as_csv(answer).encode())
    elif session.screen.json:
        session.screen.value(answer)
    else:
        show(session.screen, answer)
    return 0


def show(screen: Screen, answer: UseReport) -> None:
    """Print a report: the summary first, then the rows, then the notes."""
    screen.heading(words.clean(answer.text))
    if answer.by is UseBy.CLASS:
        screen.table(CLASS_COLUMNS, list(_classes(answer.rows)))
    elif answer.rows:
        rows = [row for row in answer.rows if row.held_gpu_h > 0 or answer.by not in PEOPLE]
        screen.table(_columns(answer), [_cells(answer, row) for row in rows])
        screen.line(_legend(answer))
    for note in answer.notes:
        screen.line(words.clean(note))


def _classes(rows: Sequence[UseRow]) -> Iterator[Sequence[str]]:
    """Yield the cells of each class. Rounded hours and shares add up to the total."""
    found = [UseClass(row.name or "") for row in rows]
    amounts = [row.gpu_h.get(one, 0.0) for one, row in zip(found, rows, strict=True)]
    cells = zip(found, phrases.parts_of_gpu_hours(amounts), phrases.shares(amounts), strict=True)
    for one, hours, part in cells:
        yield TITLES[one], hours, part if any(amounts) else "-"


def _legend(answer: UseReport) -> str:
    """Return the legend of the columns, with the hours not held if no column shows them."""
    held = "In GPU-hours: held by benches and jobs, of that busy, idle and lost to pauses"
    if answer.by not in PEOPLE:
        return f"{held}; and not held."
    waits = "Then the longest wait of 50 % and 95 % of the jobs, and how often they were preempted."
    unheld = sum(answer.total.gpu_h.get(one, 0.0) for one in UNHELD)
    not_held = f" {phrases.gpu_hours(unheld)} GPU-hours were not held." if unheld else ""
    return f"{held}. {waits}{not_held}"


def _columns(answer: UseReport) -> Sequence[Column]:
    titles = [title for title, _ in SUMS]
    titles += [] if answer.by in PEOPLE else ["NOT HELD"]
    titles += [answer.currency] if answer.currency else []
    titles += ["50 %", "95 %", "PAUSED"] if answer.by in PEOPLE else []
    right = (Column(title, align="right") for title in titles)
    return Column(answer.by.value.upper(), width=NAME_WIDTH), *right


def _cells(answer: UseReport, row: UseRow) -> Sequence[str]:
    sums = [*(classes for _, classes in SUMS), *([] if answer.by in PEOPLE else [UNHELD])]
    return (
        words.clean(row.name or _unnamed(answer.by)),
        *(_hours(sum(row.gpu_h.get(one, 0.0) for one in classes)) for classes in sums),
        *((_money(row.cost or 0.0),) if answer.currency else ()),
        *(_waits(row) if answer.by in PEOPLE else ()),
    )


def _waits(row: UseRow) -> Sequence[str]:
    waits = row.waits
    known = (
        ("-", "-")
        if waits is None
        else (phrases.duration(waits.p50_s), phrases.duration(waits.p95_s))
    )
    return *known, str(row.preemptions_given)


def _money(amount: float) -> str:
    return f"{amount:,.2f}" if amount < 100 else f"{amount:,.0f}"


def _hours(hours: float) -> str:
    return phrases.gpu_hours(hours).replace("under ", "<")


def _unnamed(by: UseBy) -> str:
    return "(no project)" if by is UseBy.PROJECT else "(none)"


_TIME = "RFC 3339, or an age such as 7d"

REPORT = Verb(
    ("report",),
    "Show the GPU-hours of a time range by use (computing, idle, lost, free) and by owner.",
    _report,
    (
        option("--by", type=click.Choice([one.value for one in UseBy]),
               default=UseBy.PROJECT.value, help="Grouping of the rows."),
        option("--from", "begin", metavar="T",
               help=f"Start of the range: {_TIME}; by default 30 days ago."),
        option("--to", "end", metavar="T", help=f"End of the range: {_TIME}; by default now."),
        option("--month", metavar="YYYY-MM", help="Month, in the time zone of the pool."),
        option("--csv", is_flag=True, help="Print CSV."),
        option("--enough", type=click.FloatRange(min=0, min_open=True), metavar="DAYS",
               help="Show instead how many GPUs would have been enough for the jobs that ended in "
               "the last DAYS, in one pool and in static shares. For administrators."),
    ),
    "Administrators see the whole pool, leads their projects and themselves, others themselves. "
    "Jobs that cross the edge of the range are cut to it.",
)  # fmt: skip
