"""Verb that replays a recorded workload (formats, section 2)."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count

_FILE = click.Path(path_type=Path, dir_okay=False)


def _replay(session: Session, options: Options) -> int:
    from benchpool_scheduler.simulation import replay

    given, screen = dict(options), session.screen
    trace, days = given.pop("trace"), given.pop("past")
    if (trace is None) == (days is None):
        raise InvalidInput(
            "Give either a TRACE to replay, or --history DAYS for the history of this pool.",
            field="trace",
        )
    if days is None:
        return replay.run(replay.ReplayOptions(Path(trace), **given, json=screen.json))
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder) / "history.csv"
        past = session.client.history(days)
        if len(past.splitlines()) < 2:
            raise InvalidInput(
                f"No job ran and ended in the last {count(days, 'day')}, so there is nothing to "
                "replay. Give more days, or a trace.",
                field="history",
            )
        own.write_bytes(past)
        if given["gpus"] is None and given["nodes"] is None:
            given["gpus"] = len(session.client.status().gpus)
        return replay.run(replay.ReplayOptions(own, **given, json=screen.json))


REPLAY = Verb(
    ("replay",), "Run the decision core over a recorded workload in virtual time.", _replay,
    (argument("trace", metavar="[TRACE]", required=False, type=click.Path(dir_okay=False)),
     option("--history", "past", type=click.FloatRange(min=0, min_open=True), metavar="DAYS",
            help="Replay the jobs of this pool that ended in the last DAYS days instead of a "
            "trace, by default on as many GPUs as it has; for administrators."),
     option("--gpus", type=click.IntRange(1), metavar="N",
            help="A pool of N GPUs without nodes: counts only."),
     option("--nodes", type=click.IntRange(1), metavar="K",
            help="A pool of K nodes, so that placement counts."),
     option("--gpus-per-node", type=click.IntRange(1), metavar="G", help="GPUs of each node."),
     option("--policy", type=click.Choice(["guaranteed", "static", "fifo"]), default="guaranteed",
            help="The rules of benchpool; a fixed partition per project; or one strict queue."),
     option("--quotas", type=_FILE, metavar="FILE", help="CSV file of project,quota."),
     option("--quota-rule", type=click.Choice(["p98", "p98-scaled", "equal"]),
            default="p98-scaled",
            help="98th percentile of each project's own demand; scaled to the pool; or equal."),
     option("--window", metavar="A:B", help="Only jobs submitted between day A and day B."),
     option("--min-jobs", type=click.IntRange(0), default=0, metavar="N",
            help="Leave out projects with fewer jobs."),
     option("--load", type=click.FloatRange(0, min_open=True), default=1.0, metavar="X",
            help="Divide all submission times by X."),
     option("--restart-s", type=click.FloatRange(0), default=60.0, metavar="S",
            help="Cost of one resume."),
     option("--lost-progress-s", type=click.FloatRange(0), default=0.0, metavar="S",
            help="Mean progress lost per preemption."),
     option("--seed", type=int, default=0, metavar="N", help="Seed of --sample."),
     option("--sample", type=click.FloatRange(0, 1, min_open=True), default=1.0, metavar="P",
            help="Keep a random share of the jobs."),
     option("--estimates", is_flag=True,
            help="Estimate the starts of waiting jobs every half hour, and report the accuracy."),
     option("--judged-from", type=click.FloatRange(0), metavar="DAY",
            help="Count only estimates from this day of the trace on; earlier jobs only teach."),
     option("--jobs-out", type=_FILE, metavar="FILE", help="Write one row per job.")),
    "Run times are hidden from the scheduler. Every job runs to its end; utilisation is measured "
    "over the window.",
)  # fmt: skip
