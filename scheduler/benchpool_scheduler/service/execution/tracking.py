"""Names that make all attempts of a job one run of an experiment tracker; pure functions.

Only the first worker gets them, so that a gang is one run. Values set by the job or the
administrator take precedence. ``benchpool.metrics.trackers`` configures trackers that take no name
from the environment, when they are imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from benchpool_scheduler.store.records import JobRecord

TENSORBOARD = "TENSORBOARD_LOGGING_DIR"
"""Folder for the event files of all attempts; read by transformers, and for torch by our hook."""
_RUN_OF_WANDB = ("WANDB_RUN_ID", "WANDB_RESUME")
_MODE_OF_WANDB = ("WANDB_MODE", "WANDB_DISABLED")


def with_names(
    given: Mapping[str, str], job: JobRecord, worker: int, *, base_url: str, results: PurePath
) -> dict[str, str]:
    """Return a worker's environment with the tracker variables added to the given ones.

    Args:
        worker: Its index in the gang.
        base_url: The pool's full address. A mere path is useless in a link from a tracker.
        results: The output folder, as the worker sees it.
    """
    known = base_url.startswith(("https://", "http://"))
    page = f"{base_url.rstrip('/')}/jobs/{job.id}" if known else ""
    named = _of_first(job, page, given, results) if worker == 0 else _of_others(given)
    named["BENCHPOOL_JOB_URL"] = page
    return {**{name: text for name, text in named.items() if text}, **given}


def _of_first(
    job: JobRecord, page: str, given: Mapping[str, str], results: PurePath
) -> dict[str, str]:
    # A job that sets one of the two chooses its own run. Setting the other would change it.
    chosen = any(name in given for name in _RUN_OF_WANDB)
    run = {} if chosen else {"WANDB_RUN_ID": job.id, "WANDB_RESUME": "allow"}
    return {
        **run,
        "WANDB_NAME": job.name,
        "WANDB_NOTES": page or f"Job {job.id[:8]} of benchpool",
        "WANDB_DIR": str(results),
        TENSORBOARD: str(results / "tensorboard"),
    }


def _of_others(given: Mapping[str, str]) -> dict[str, str]:
    chosen = any(name in given for name in (*_RUN_OF_WANDB, *_MODE_OF_WANDB))
    return {} if chosen else {"WANDB_MODE": "disabled"}
