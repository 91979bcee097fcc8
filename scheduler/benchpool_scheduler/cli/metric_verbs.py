"""``benchpool metrics`` and ``benchpool compare``: show reported metrics as tables and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from benchpool_scheduler import phrases
from benchpool_scheduler.cli import metric_following, words
from benchpool_scheduler.cli.screen import Cell, Column, Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.client import Client
from benchpool_scheduler.contract import Curve, JobMetrics, MetricPoint
from benchpool_scheduler.curves.comparison import MOST_RUNS, RunComparison, compared, run_of
from benchpool_scheduler.curves.figures import Goal
from benchpool_scheduler.curves.trials import best_of, goals_of
from benchpool_scheduler.curves.views import points_of
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import sparks

COLUMNS = (
    Column("NAME", width=24),
    Column("LAST", align="right"),
    Column("AT STEP", align="right"),
    Column("LEAST", align="right"),
    Column("GREATEST", align="right"),
    Column("CURVE"),
)
POINTS = ("name", "attempt", "step", "value", "after_s")
WIDTH = 24
BEST = " ★"


def _metrics(session: Session, options: Options) -> int:
    if options["follow"]:
        return _follow(session, options["id"], options["name"], csv=options["csv"])
    answer = session.client.job_metrics(options["id"], name=options["name"])
    screen = session.screen
    if options["csv"]:
        rows = ((it.name, *point) for it in answer.curves for point in points_of(it))
        screen.bytes(phrases.as_csv(POINTS, rows).encode())
    elif screen.json:
        screen.value(answer)
    else:
        show(screen, answer, options["name"])
    return 0


def _follow(session: Session, id_: str, name: str | None, *, csv: bool) -> int:
    """Print the current metrics, then new ones: sentences, or with ``--json`` one object a line."""
    if csv:
        raise InvalidInput("--follow does not take --csv. Use --json, or neither.", field="csv")
    job, screen = session.client.job(id_).job.id, session.screen
    answer = session.client.job_metrics(job, name=name)
    known = metric_following.newest(answer)
    if known and not screen.json:
        show(screen, answer, name)
    for news in metric_following.follow(session.client, job, name, {} if screen.json else known):
        if screen.json:
            for name_, it in news.items():
                fact = {"name": name_, **it._asdict()}
                screen.bytes(msgspec.json.encode(fact) + b"\n")
        else:
            for line in metric_following.lines_of(news):
                screen.line(words.clean(line))
    return 0


def show(screen: Screen, answer: JobMetrics, name: str | None) -> None:
    """Print the curves of a job, one line each. A single named curve is drawn as a picture."""
    if not answer.curves:
        what = "nothing" if name is None else f"nothing named {name!r}"
        screen.line(
            f"Job {answer.job[:8]} ({words.clean(answer.name)}) has reported {words.clean(what)}. "
            "Call `benchpool.log(loss=loss, step=step)` in its code."
        )
        return
    screen.table(COLUMNS, [_row(it) for it in answer.curves])
    if name is not None:
        (curve,) = answer.curves
        for line in sparks.picture(curve.steps, curve.values, curve.attempts):
            screen.line(line)
    if any(len(set(it.attempts)) > 1 for it in answer.curves):
        marks = sparks.PAUSE if name is None else f"{sparks.PAUSE} and │"
        screen.line(f"{marks}: the job was paused.")


def _row(curve: Curve) -> Sequence[str]:
    return (
        curve.name,
        _value(curve.last),
        "-" if curve.last is None else str(curve.last.step),
        _value(curve.min),
        _value(curve.max),
        sparks.spark(curve.steps, curve.values, curve.attempts, WIDTH),
    )


def _value(point: MetricPoint | None) -> str:
    return "-" if point is None else sparks.metric(point.value)


def _compare(session: Session, options: Options) -> int:
    ids, goals = _chosen(session.client, options)
    if not 2 <= len(ids) <= MOST_RUNS:
        raise InvalidInput(
            f"compare takes 2 to {MOST_RUNS} jobs; {len(ids)} were named or found.",
            field="ids",
            numbers={"jobs": len(ids), "limit": MOST_RUNS},
        )
    client = session.client
    runs = [
        run_of(client.job(it).job, client.submission(it), client.job_metrics(it, points=10))
        for it in ids
    ]
    found = compared(runs, {**goals, **_goals(options)})
    if session.screen.json:
        session.screen.value(found)
    else:
        show_comparison(session.screen, found)
    return 0


def _chosen(client: Client, options: Options) -> tuple[list[str], Mapping[str, Goal]]:
    """Return the IDs of the jobs, and the goals of their sweep.

    From a sweep the best jobs are taken, and from a tag the newest, up to the limit of a
    comparison.
    """
    ids, goals = list(options["ids"]), dict[str, Goal]()
    if options["sweep"]:
        sweep = client.sweep(options["sweep"])
        ids += best_of(sweep, MOST_RUNS - len(ids))
        goals = goals_of(sweep)
    if options["tag"]:
        room = MOST_RUNS - len(ids)
        tagged = client.jobs(all_=True, tag=options["tag"], limit=room) if room > 0 else []
        ids += [it.id for it in tagged]
    return list(dict.fromkeys(ids)), goals


def _goals(options: Options) -> Mapping[str, Goal]:
    least: dict[str, Goal] = dict.fromkeys(options["least"], "min")
    both = least.keys() & set(options["greatest"])
    if both:
        raise InvalidInput(f"{sorted(both)[0]} has --min and --max. Use one of them.", field="min")
    return least | dict.fromkeys(options["greatest"], "max")


def show_comparison(screen: Screen, found: RunComparison) -> None:
    """Print runs side by side: names, differing parameters and results."""
    columns = (Column("", width=32), *(Column(it.id[:8], width=18) for it in found.jobs))
    rows: list[Sequence[str | Cell]] = [
        ("name", *(it.name for it in found.jobs)),
        ("state", *(str(it.state) for it in found.jobs)),
    ]
    if any(it.tags for it in found.jobs):
        rows.append(("tags", *(", ".join(it.tags) or "–" for it in found.jobs)))
    rows += [(row.name, *row.values) for row in found.parameters]
    for metric in found.metrics:
        rows.append((f"{metric.name}, last", *(_value(it.last) for it in metric.cells)))
        if metric.goal is not None:
            title = f"{metric.name}, {'least' if metric.goal == 'min' else 'greatest'}"
            cells = (
                Cell(_value(it.best) + (BEST if it.is_best else ""), "bold" * it.is_best)
                for it in metric.cells
            )
            rows.append((title, *cells))
    screen.table(columns, rows)
    for job in found.jobs:
        if job.note:
            screen.line(f"{job.id[:8]}: {words.clean(job.note)}")
    screen.line(_summary(found))


def _summary(found: RunComparison) -> str:
    agree = f"The jobs agree in {phrases.count(found.same, 'option')}."
    if not found.metrics:
        return f"{agree} None of them has reported a number."
    marked = f"{BEST.strip()} is the best of a row. Set what is better with --min or --max NAME."
    return f"{agree} {marked}"


METRICS = Verb(
    ("metrics",),
    "Show the metrics of a job: last, least and greatest value, and the curve.",
    _metrics,
    (
        argument("id", metavar="ID"),
        option("--name", help="Show only this metric, with a picture of its curve."),
        option("-f", "--follow", is_flag=True, help="Follow new values until the job ends."),
        option("--csv", is_flag=True, help="Print all points as CSV."),
    ),
    "Jobs report with `benchpool.log(loss=loss, step=step)`. Trainers of known libraries report by "
    "themselves. A job's curve continues over its pauses.",
)

COMPARE = Verb(
    ("compare",),
    "Compare jobs: options and arguments that differ, and reported metrics.",
    _compare,
    (
        argument("ids", metavar="ID...", nargs=-1),
        option("--sweep", metavar="SWEEP", help="Trials of a sweep, the best first."),
        option("--tag", metavar="TAG", help="Newest jobs with this tag."),
        option("--min", "least", multiple=True, metavar="NAME", help="Metric to minimize."),
        option("--max", "greatest", multiple=True, metavar="NAME", help="Metric to maximize."),
    ),
    "By default the name shows what is better: less of a loss or an error, more of an accuracy.",
)
