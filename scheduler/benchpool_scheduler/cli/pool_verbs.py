"""Verbs that use a pool: jobs, logs, quota, status, configuration."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchpool_scheduler import phrases
from benchpool_scheduler.cli import (
    audit_views,
    entry,
    following,
    scheduling,
    submitting,
    sweeping,
    views,
)
from benchpool_scheduler.cli.change_verbs import CHANGES
from benchpool_scheduler.cli.metric_verbs import COMPARE, METRICS
from benchpool_scheduler.cli.node_verbs import WINDOW
from benchpool_scheduler.cli.plain_verbs import plain
from benchpool_scheduler.cli.report_verb import REPORT
from benchpool_scheduler.cli.result_words import nothing_fetched
from benchpool_scheduler.cli.serving import SERVE
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.shell_verb import SHELL
from benchpool_scheduler.cli.verb import Options, Verb, argument, option, submit_option
from benchpool_scheduler.client import results
from benchpool_scheduler.contract import AuditOutcome
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import OPERATIONS, Operations
from benchpool_scheduler.contract.options import OPTIONS
from benchpool_scheduler.phrases import audit_table


def _apply(session: Session, options: Options) -> int:
    # It reads object files, which needs modules that no other verb needs.
    from benchpool_scheduler.cli import applying

    return applying.apply(session, options)


def _audit(session: Session, options: Options) -> int:
    return _records(session, options)


def _events(session: Session, options: Options) -> int:
    return _records(session, options, events=True)


def _records(session: Session, options: Options, *, events: bool = False) -> int:
    now = datetime.now(UTC)
    asked = {name: value for name, value in options.items() if name != "csv"}
    asked |= {name: entry.instant(options[name], now, name) for name in ("since", "until")}
    if asked.get("outcome") is not None:
        asked["outcome"] = AuditOutcome(asked["outcome"])
    page = session.client.audit(events=events, **asked)
    if options["csv"]:
        sys.stdout.write(audit_table(page.records))
    elif session.screen.json:
        session.screen.value(page)
    else:
        audit_views.audit(session.screen, page)
    return 0


def _status(session: Session, options: Options) -> int:
    answer = session.client.status()
    if session.screen.json:
        session.screen.value(answer)
    else:
        views.status(session.screen, answer, session.client.jobs(limit=10))
    return 0


NEVER = "No log yet: the job has not started."
QUIET = "Nothing was written to the log since then."
EMPTY = "The log is empty: nothing was written to it, or the job's files no longer exist."


def _logs(session: Session, options: Options) -> int:
    client, id_, worker = session.client, options["id"], options["worker"]
    attempt, screen = options["attempt"], session.screen
    since = entry.instant(options["since"], datetime.now(UTC), "since")
    if not options["follow"]:
        pieces = following.log_of(client, id_, attempt=attempt, worker=worker, since=since)
    elif attempt is not None:
        log = client.follow_log(id_, attempt=attempt, worker=worker, since=since)
        pieces = (piece.text.encode() for piece in log)
    else:
        pieces = following.follow(
            client, client.job(id_).job.id, worker=worker, report=screen.aside, since=since
        )
    written = False
    try:
        for piece in pieces:
            screen.bytes(piece)
            written = True
    except KeyboardInterrupt:
        screen.aside(submitting.runs_on(client.job(id_).job))
        return submitting.INTERRUPTED
    if not written:
        detail = client.job(id_)
        gone = phrases.no_longer_kept(detail.kept, "logs", datetime.now(UTC))
        empty = EMPTY if since is None else QUIET
        screen.aside(gone or (empty if detail.attempts else NEVER))
    return 0


def _results(session: Session, options: Options) -> int:
    client, screen = session.client, session.screen
    detail = client.job(options["id"])
    job = detail.job
    output_dir = client.submission(job.id).output_dir
    if options["to"]:
        folder = Path(options["to"])
    else:
        folder = results.folder_of(output_dir, session.folder, job.id)
    files = results.fetch(client, job.id, folder, detail.most_workers)
    if screen.json:
        screen.value({"folder": str(folder), "files": files})
    elif files:
        screen.line(f"{len(files)} files in {folder}")
    else:
        screen.line(nothing_fetched(detail, output_dir, datetime.now(UTC)))
    return 0


def _history(session: Session, options: Options) -> int:
    trace = session.client.history(options["days"])
    if session.screen.json:
        session.screen.value(list(csv.DictReader(trace.decode().splitlines())))
    else:
        session.screen.bytes(trace)
    return 0


def _submit(session: Session, options: Options) -> int:
    return submitting.submit(session, options["command"], options)


_ID = argument("id", metavar="ID")

_SUBMIT_PARAMS: Sequence[click.Parameter] = (
    *(submit_option(each) for each in OPTIONS),
    *sweeping.PARAMS,
    *scheduling.PARAMS,
    option("--key", help="Key of the submission; the same key returns the same job."),
    option("--python", metavar="PROGRAM",
           help="Python of a script, module or notebook, by path or name."),
    option("--dry-run", is_flag=True,
           help="Show the preview, such as the cost of a sweep, and send nothing."),
    option("--wait", is_flag=True, help="Follow the log to its end, and exit as the job did."),
)  # fmt: skip

_SUBMIT_DETAILS = """\
The current folder's files are sent with the job: those that git would track, without caches,
environments and files that look like secrets; .benchpoolignore excludes more. The job runs with the
Python of the active environment, else with `python3` on the path, and a notebook with that of its
kernel if it is installed here. Results come back to benchpool-results/. Options of benchpool come
first; every word from SCRIPT, -m or -- on belongs to the job. All cells of a NOTEBOOK run in order,
and the executed copy is among the results."""

_APPLY_DETAILS = """\
The same files on a workstation and on a cluster. Project, NodePool and PoolSettings objects are put
in force as a whole, like a benchpool.yaml. A TrainingJob becomes your job. Applied again, it is the
same job: spec.suspend pauses and resumes it, spec.priority and spec.workers change it."""

SUBMIT = Verb(("submit",), "Send a script, notebook, module or command of this folder to the pool.",
              _submit, tuple(_SUBMIT_PARAMS), _SUBMIT_DETAILS, command=True)  # fmt: skip
LOGS = Verb(("logs",), "Print the log of a job.", _logs,
            (_ID,
             option("-f", "--follow", is_flag=True, help="Follow the log, through all attempts."),
             option("--attempt", type=click.IntRange(min=1),
                    help="Number of the attempt; by default the newest."),
             option("--worker", type=click.IntRange(min=0), default=0,
                    help="Number of the worker."),
             option("--since", metavar="T",
                    help="Output from this time on: RFC 3339, or an age such as 10m."),
             ))  # fmt: skip
RESULTS = Verb(("results",), "Fetch results that could not be written to the job's folder.",
               _results,
               (_ID, option("--to", metavar="FOLDER",
                            help="Target folder; by default the one that `submit` named.")
                ))  # fmt: skip
STATUS = Verb(("status",), "Show the pool and your own jobs.", _status)
HISTORY = Verb(("history",), "Print ended jobs as a trace that can be replayed.", _history,
               (option("--days", type=click.FloatRange(min=0, min_open=True), default=30.0,
                       metavar="DAYS", help="Days to look back."),),
               "CSV in the columns that `benchpool replay` and `benchpool whatif --trace` read. "
               "For administrators.")  # fmt: skip
_RECORDS = (
    option("--since", metavar="T",
           help="Records from this time on: RFC 3339, or an age such as 2d."),
    option("--until", metavar="T", help="Records before this time, written as for --since."),
    option("--actor", metavar="NAME", help="Records of this user or service."),
    option("--action", metavar="NAME",
           help="Records of this operation, such as cancel or set_config."),
    option("--target", metavar="ID",
           help="Records about this job, lease or user; a prefix is enough."),
    option("--search", metavar="TEXT", help="Records that contain this text, such as R15."),
    option("--limit", type=click.IntRange(1, 5000), default=50,
           help="Maximum number of records; the newest are kept."),
    option("--csv", is_flag=True, help="Print comma-separated values."),
)  # fmt: skip
EVENTS = Verb(("events",), "Show actions of users, and preemptions with their rules.",
              _events, _RECORDS,
              "For administrators. `benchpool audit` also has refusals and logins; both read the "
              "same records.")  # fmt: skip
AUDIT = Verb(("audit",), "Show who did what, from where and why, with refusals and logins.",
             _audit,
             (*_RECORDS,
              option("--outcome", type=click.Choice([one.value for one in AuditOutcome]),
                     help="Records with this outcome.")),
             "For administrators. With --json each record has its changes, number and "
             "hash.")  # fmt: skip
APPLY = Verb(("apply",), "Apply YAML: a benchpool.yaml, or objects as for kubectl.",
             _apply,
             (option("-f", "--file", "file", required=True, metavar="FILE",
                     type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
                     help="File to apply; - is standard input."),),
             _APPLY_DETAILS)  # fmt: skip

_AFTER: Mapping[Operation[Any], tuple[Verb, ...]] = {
    Operations.job: (LOGS, RESULTS),
    Operations.peek: (SHELL,),
    Operations.usage: (METRICS, COMPARE, CHANGES),
    Operations.line: (STATUS, HISTORY, REPORT, EVENTS, AUDIT, APPLY),
    Operations.note_node: (WINDOW,),
}
"""Verbs that send more than one request, by the operation whose plain verb precedes them."""


def _all() -> Iterator[Verb]:
    yield SUBMIT
    yield SERVE
    for one in OPERATIONS:
        if one.verb is not None:
            yield plain(one)
            yield from _AFTER.get(one, ())


POOL_VERBS: tuple[Verb, ...] = tuple(_all())
