"""The verbs that talk to a pool: jobs, logs, quota, status, configuration."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from benchpool_scheduler.cli import applying, entry, following, submitting, views
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Run, Verb, argument, option
from benchpool_scheduler.client import Client, results
from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.errors import BenchpoolError, InvalidInput


def _answered(ask: Callable[[Client, Options], Any], show: Callable[[Screen, Any], None]) -> Run:
    """Return a verb that asks one thing and shows it."""

    def run(session: Session, options: Options) -> int:
        answer = ask(session.client, options)
        if session.screen.json:
            session.screen.value(answer)
        else:
            show(session.screen, answer)
        return 0

    return run


def _acting(act: Callable[[Client, str, Options], Job]) -> Run:
    """Return a verb that does one thing to each job and then answers all of them."""

    def run(session: Session, options: Options) -> int:
        done: list[Job] = []
        refused: list[BenchpoolError] = []
        for id_ in options["ids"]:
            try:
                done.append(act(session.client, id_, options))
            except BenchpoolError as failed:
                refused.append(failed)
        if done and not session.screen.json:
            views.jobs(session.screen, done)
        for other in refused[1:]:
            session.screen.aside(f"benchpool: {other.message}")
        if refused:
            raise refused[0]
        if session.screen.json:
            session.screen.value(done)
        return 0

    return run


def _change(client: Client, id_: str, given: Options) -> Job:
    return client.change(id_, priority=given["priority"], workers=given["workers"])


def _status(session: Session, options: Options) -> int:
    answer = session.client.status()
    if session.screen.json:
        session.screen.value(answer)
    else:
        views.status(session.screen, answer, session.client.jobs(limit=10))
    return 0


def _logs(session: Session, options: Options) -> int:
    client, id_, worker = session.client, options["id"], options["worker"]
    attempt, screen = options["attempt"], session.screen
    since = entry.since(options["since"], datetime.now(UTC))
    if not options["follow"]:
        pieces = following.log_of(client, id_, attempt=attempt, worker=worker, since=since)
    elif attempt is not None:
        log = client.follow_log(id_, attempt=attempt, worker=worker, since=since)
        pieces = (piece.text.encode() for piece in log)
    else:
        pieces = following.follow(
            client, client.job(id_).job.id, worker=worker, say=screen.aside, since=since
        )
    try:
        for piece in pieces:
            screen.bytes(piece)
    except KeyboardInterrupt:
        screen.aside(submitting.runs_on(client.job(id_).job))
        return submitting.INTERRUPTED
    return 0


def _results(session: Session, options: Options) -> int:
    client, screen = session.client, session.screen
    detail = client.job(options["id"])
    job = detail.job
    folder = Path(options["to"] or session.folder / submitting.RESULTS / job.id[:8])
    files = results.fetch(client, job.id, folder, detail.most_workers)
    if screen.json:
        screen.value({"folder": str(folder), "files": files})
    elif files:
        screen.line(f"{len(files)} files in {folder}")
    else:
        screen.line("Nothing was sent: results lie in the folder that the job was sent from.")
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


def _config(action: str) -> Run:
    def run(session: Session, options: Options) -> int:
        text = _read(options["file"])
        answer = getattr(session.client, f"{action}_config")(text)
        if session.screen.json:
            session.screen.value(answer)
        else:
            views.change(session.screen, answer)
        return 0

    return run


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as failed:
        raise InvalidInput(f"{path} cannot be read ({failed}).", field="file") from failed


_ID = argument("id", metavar="ID")
_IDS = argument("ids", metavar="ID...", nargs=-1, required=True)
_REASON = option("--reason", help="A short reason, which the job's owner sees.")
_FILE = argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
_WORKERS, _LEVELS = click.IntRange(1, 4096), click.IntRange(0, 1000)
_TURN = "Its turn inside the project; higher first."
_PRIORITY = option("--priority", type=_LEVELS, help=_TURN)
_STATES = click.Choice([state.value for state in State])

_SUBMIT_PARAMS: Sequence[click.Parameter] = (
    option("--project", help="The project; needed by those who belong to several."),
    option("--name", help="Name of the job; the script's by default."),
    option("--gpus", type=click.IntRange(1, 1024), default=1, help="GPUs per worker."),
    option("--workers", type=_WORKERS, default=1, help="Workers of the gang."),
    option("--min-workers", type=_WORKERS, help="The smallest gang it runs as."),
    option("--priority", type=_LEVELS, default=50, help=_TURN),
    option("--non-preemptible", is_flag=True,
           help="Never paused for others; must fit the guaranteed quota."),
    option("--time-limit", type=click.IntRange(min=1), metavar="S",
           help="Seconds after which it is ended."),
    option("--env", multiple=True, metavar="K=V",
           help="A variable of the job; a bare K takes the value it has here."),
    option("--gpu-model", "gpu_models", multiple=True, metavar="MODEL",
           help="A GPU model that it accepts, best first; any without this."),
    option("--level", metavar="LEVEL",
           help="All workers share one of these, such as rack or node, or wait."),
    option("--prefer-level", metavar="LEVEL",
           help="All workers share one of these where possible."),
    option("--spread", is_flag=True, help="Every worker on a machine of its own where possible."),
    option("--cpus", type=click.FloatRange(min=0), default=0.0, metavar="C",
           help="Processor cores per worker."),
    option("--memory", type=click.FloatRange(min=0), default=0.0, metavar="GIB",
           help="Memory per worker."),
    option("--image", metavar="IMAGE", help="Container image to run in; on clusters."),
    option("--key", help="Makes a repeat harmless: the same key is the same job."),
    option("--wait", is_flag=True, help="Follow until the end and exit as the job did."),
)  # fmt: skip

_SUBMIT_DETAILS = """\
The current folder's files go with the job: those that git would track, without caches, environments
and what looks like a secret; .benchpoolignore leaves more out. The job runs with the Python that
`python3` means here: of the active environment, else on the path. Its results come back to
benchpool-results/. Options of benchpool come first; every word from SCRIPT, -m or -- on belongs to
the job."""

_CHANGE_DETAILS = """\
Everything else stays as it was accepted. A job that waits may get any number of workers that could
run. One that runs keeps its workers unless it was sent with --min-workers: more then come when
there is room, and the last ones go at once, saving as for a pause."""

_APPLY_DETAILS = """\
The same files on a workstation and on a cluster. Project, NodePool and PoolSettings objects are put
in force as a whole, like a benchpool.yaml. A TrainingJob becomes your job; applied again it is the
same one: spec.suspend pauses and resumes it, spec.priority and spec.workers change it."""

POOL_VERBS: tuple[Verb, ...] = (
    Verb(("submit",), "Send a script, module or command of this folder to the pool.", _submit,
         tuple(_SUBMIT_PARAMS), _SUBMIT_DETAILS, command=True),
    Verb(("jobs",), "List your jobs, newest first.",
         _answered(
             lambda client, given: client.jobs(
                 all_=given["all"], project=given["project"], state=given["state"]),
             views.jobs),
         (option("--all", is_flag=True, help="All jobs that you may see."),
          option("--project", help="Only jobs of this project."),
          option("--state", type=_STATES, help="Only jobs in this state."))),
    Verb(("show",), "Show a job and its attempts.",
         _answered(lambda client, given: client.job(given["id"]), views.job), (_ID,)),
    Verb(("logs",), "Print the log of a job.", _logs,
         (_ID,
          option("-f", "--follow", is_flag=True, help="Follow it, through all attempts."),
          option("--attempt", type=click.IntRange(min=1), help="Which attempt; the newest."),
          option("--worker", type=click.IntRange(min=0), default=0, help="Which worker."),
          option("--since", metavar="T",
                 help="From this time on: RFC 3339, or how long ago, such as 10m."))),
    Verb(("results",), "Fetch what a job has sent because no folder could take it.", _results,
         (_ID, option("--to", metavar="FOLDER", help="Where to; benchpool-results/ID."))),
    Verb(("why",), "Say why a job waits, and what would make it start.",
         _answered(lambda client, given: client.why(given["id"]), views.why), (_ID,)),
    Verb(("pause",), "Pause jobs: they keep their progress and wait until resumed.",
         _acting(lambda client, id_, given: client.pause(id_, given["reason"])),
         (_IDS, _REASON)),
    Verb(("resume",), "Queue paused jobs again.",
         _acting(lambda client, id_, given: client.resume(id_, given["reason"])),
         (_IDS, _REASON)),
    Verb(("cancel",), "End jobs for good.",
         _acting(lambda client, id_, given: client.cancel(id_, given["reason"])),
         (_IDS, _REASON)),
    Verb(("change",), "Give jobs another priority or other workers.", _acting(_change),
         (_IDS, _PRIORITY, option("--workers", type=_WORKERS, help="Workers from now on.")),
         _CHANGE_DETAILS),
    Verb(("quota",), "Say what you have on the bench and in your projects.",
         _answered(lambda client, given: client.quota(given["user"]), views.quota),
         (option("--user", help="Another user, for those who may see it."),)),
    Verb(("line",), "Say who waits in line for a bench, since when, and until when.",
         _answered(lambda client, given: client.line(), views.line), (),
         "Administrators see everybody, others their own servers."),
    Verb(("status",), "Show the pool and your own jobs.", _status),
    Verb(("history",), "Print what ran and ended as a trace that can be replayed.", _history,
         (option("--days", type=click.FloatRange(min=0, min_open=True), default=30.0,
                 metavar="DAYS", help="How far back."),),
         "CSV in the columns that `benchpool replay` and `benchpool whatif --trace` read. For "
         "administrators."),
    Verb(("apply",), "Apply YAML: a benchpool.yaml, or objects as kubectl takes them.",
         applying.apply,
         (option("-f", "--file", "file", required=True, metavar="FILE",
                 type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
                 help="The file; - reads standard input."),),
         _APPLY_DETAILS),
    Verb(("config", "check"), "Say what a benchpool.yaml would change for whom.",
         _config("check"), (_FILE,)),
    Verb(("config", "apply"), "Put a benchpool.yaml in force, all or nothing.",
         _config("apply"), (_FILE,)),
)  # fmt: skip
