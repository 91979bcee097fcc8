"""Runs of MLflow, Trackio and TensorBoard that continue when a paused job resumes, and their links.

Where a library begins a run, a job's run gets the same name in every attempt. Names chosen by the
program stay. Only the first process of the first worker does this. If the search for a run fails,
the error is suppressed and the library begins the run as it would without benchpool.
"""

from __future__ import annotations

import atexit
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any

from benchpool.checkpoint import notices
from benchpool.metrics import begun_runs
from benchpool.metrics.close_runs import ENDS

JOB, RUN = "benchpool.job", "benchpool.run"
"""Tags of MLflow's runs: the job's ID, and the name that the program gave the run."""
NOTE = "mlflow.note.content"


def is_first(variables: Mapping[str, str]) -> bool:
    """Return whether this process reports for the job.

    >>> is_first({"BENCHPOOL_JOB_ID": "j", "NODE_RANK": "0"})
    True
    >>> is_first({"BENCHPOOL_JOB_ID": "j", "NODE_RANK": "0", "RANK": "3"}), is_first({})
    (False, False)
    """
    ranks = {variables.get(name, "0") for name in ("NODE_RANK", "RANK")}
    return bool(variables.get("BENCHPOOL_JOB_ID")) and ranks == {"0"}


def attach(library: str, module: Any) -> None:
    """Hook into a library that has just been imported. May raise any error of the library."""
    if is_first(os.environ):
        ATTACH[library](module)


# ------------------------------------------------------------------ MLflow


def _mlflow(fluent: Any) -> None:
    """Resume the run that an earlier attempt began, and end it with the job's real outcome."""
    begin, end = fluent.start_run, fluent.end_run
    takes, search = inspect.signature(begin), _search(fluent)
    begun: set[str] = set()
    leaving: list[bool] = []

    @wraps(begin)
    def start_run(*args: Any, **kwargs: Any) -> Any:
        try:
            asked = takes.bind(*args, **kwargs).arguments
            chosen = None if fluent.active_run() else _chosen(search, asked, begun)
        except Exception:
            chosen = None  # a tracker that does not answer reports it when the run begins
        run = begin(*args, **kwargs) if chosen is None else begin(**chosen)
        with suppress(Exception):  # an unreported run has no link and is not closed here
            _report_run(run, fluent)
        return run

    @wraps(end)
    def end_run(status: str = "FINISHED") -> Any:
        failed = bool(leaving) and getattr(sys, "last_value", None) is not None
        kind = notices.notice().get("kind") if leaving or status == "FAILED" else None
        active = fluent.active_run()
        answer = end(ENDS.get(kind or "", "FAILED" if failed else status))
        with suppress(Exception):
            begun_runs.ended("mlflow", active.info.run_id)
        return answer

    fluent.start_run, fluent.end_run = start_run, end_run
    atexit.register(leaving.append, True)  # runs before the library's handler


def _chosen(
    search: Callable[..., Any], asked: Mapping[str, Any], begun: set[str]
) -> dict[str, Any] | None:
    """Return the arguments for a run, or None for a run chosen by the program or a second run."""
    within = any(asked.get(name) for name in ("run_id", "nested", "parent_run_id"))
    name = asked.get("run_name") or ""
    if within or os.environ.get("MLFLOW_RUN_ID") or name in begun:
        return None
    begun.add(name)
    job = os.environ["BENCHPOOL_JOB_ID"]
    found = None
    if os.environ.get("BENCHPOOL_ATTEMPT", "1") != "1":
        runs = search(asked.get("experiment_id"), f"tags.`{JOB}` = '{job}'")
        found = next((it.info.run_id for it in runs if it.data.tags.get(RUN, "") == name), None)
    if found is not None:
        return {**asked, "run_id": found}
    tags = {JOB: job, RUN: name}
    if not asked.get("description"):
        page, text = os.environ.get("BENCHPOOL_JOB_URL"), f"Job {job[:8]} of benchpool"
        tags[NOTE] = f"[{text}]({page})" if page else text
    default = os.environ.get("MLFLOW_RUN_NAME") or os.environ.get("BENCHPOOL_JOB_NAME")
    return {**asked, "run_name": name or default, "tags": {**tags, **(asked.get("tags") or {})}}


def _report_run(run: Any, fluent: Any) -> None:
    """Report a run to the pool. May raise any error of the library."""
    store = str(fluent.MlflowClient().tracking_uri)
    page = f"#/experiments/{run.info.experiment_id}/runs/{run.info.run_id}"
    url = f"{store.rstrip('/')}/{page}" if store.startswith(("https://", "http://")) else None
    configured = os.environ.get("MLFLOW_TRACKING_URI")
    where = None if store == configured else store
    begun_runs.begun("mlflow", run.info.run_id, url=url, store=where, closable=True)


def _search(fluent: Any) -> Callable[..., Any]:
    """Return a function that finds runs of an experiment, by default the current one.

    Raises:
        AttributeError: The library has changed.
    """
    active, client = fluent._get_experiment_id, fluent.MlflowClient

    def search(experiment: Any, filters: str) -> Any:
        return client().search_runs([str(active() if experiment is None else experiment)], filters)

    return search


# ------------------------------------------------------------------ Trackio


def _trackio(module: Any) -> None:
    """Give an unnamed run the name of its job. Attempts after the first resume it."""
    begin = module.init
    takes = inspect.signature(begin)
    begun: set[str] = set()

    @wraps(begin)
    def init(*args: Any, **kwargs: Any) -> Any:
        asked = dict(takes.bind(*args, **kwargs).arguments)
        name = asked.get("name") or _name_of_job()
        # A second unnamed run is a different one, and gets its name from the library.
        if name in begun:
            return begin(*args, **kwargs)
        begun.add(name)
        if "resume" not in asked and os.environ.get("BENCHPOOL_ATTEMPT", "1") != "1":
            asked["resume"] = "allow"
        run = begin(**{**asked, "name": name})
        with suppress(Exception):
            server = asked.get("server_url") or os.environ.get("TRACKIO_SERVER_URL")
            begun_runs.begun("trackio", name, url=server, closable=False)
        return run

    module.init = init


def _name_of_job() -> str:
    return f"{os.environ.get('BENCHPOOL_JOB_NAME', 'job')}-{os.environ['BENCHPOOL_JOB_ID'][:8]}"


# ------------------------------------------------------------------ W&B


def _wandb(module: Any) -> None:
    """Report the address of a run to the pool. The run's name comes from the environment."""
    begin = module.init

    @wraps(begin)
    def init(*args: Any, **kwargs: Any) -> Any:
        run = begin(*args, **kwargs)
        with suppress(Exception):  # an offline run has no address
            begun_runs.begun("wandb", run.id, url=run.url, closable=False)
        return run

    module.init = init


# ------------------------------------------------------------------ TensorBoard


def _tensorboard(module: Any) -> None:
    """Keep event files of all attempts in one folder, unless the program names a folder."""
    begin = module.SummaryWriter.__init__

    @wraps(begin)
    def __init__(self: Any, log_dir: Any = None, comment: str = "", *args: Any, **kw: Any) -> None:
        folder = os.environ.get("TENSORBOARD_LOGGING_DIR")
        if not log_dir and folder:
            log_dir = os.path.join(folder, comment) if comment else folder
        begin(self, log_dir, comment, *args, **kw)

    module.SummaryWriter.__init__ = __init__


ATTACH: Mapping[str, Callable[[Any], None]] = {
    "mlflow": _mlflow,
    "trackio": _trackio,
    "wandb": _wandb,
    "tensorboard": _tensorboard,
}
