"""What makes all attempts of a job one run of a tracker: the same names each time. Pure.

The first worker alone has them, so that a gang is one run. What the job or the administrator has
set stays. Trackers that take no name from the environment are told by
``benchpool.metrics.trackers`` when they are imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from benchpool_scheduler.store.records import JobRecord

TENSORBOARD = "TENSORBOARD_LOGGING_DIR"
"""Where event files of all attempts lie; transformers reads it, our hook does for torch."""
_RUN_OF_WANDB = ("WANDB_RUN_ID", "WANDB_RESUME")
_MODE_OF_WANDB = ("WANDB_MODE", "WANDB_DISABLED")


def with_names(
    given: Mapping[str, str], job: JobRecord, worker: int, *, base_url: str, results: PurePath
) -> dict[str, str]:
    """Return a worker's environment with what trackers read added to what is given.

    Args:
        worker: Its index in the gang.
        base_url: The pool's address for people; a path alone leads nowhere from a tracker.
        results: The folder that comes home, where its worker can write there.
    """
    known = base_url.startswith(("https://", "http://"))
    page = f"{base_url.rstrip('/')}/jobs/{job.id}" if known else ""
    named = _of_first(job, page, given, results) if worker == 0 else _of_others(given)
    named["BENCHPOOL_JOB_URL"] = page
    return {**{name: text for name, text in named.items() if text}, **given}


def _of_first(
    job: JobRecord, page: str, given: Mapping[str, str], results: PurePath
) -> dict[str, str]:
    # Who sets one of the two has a run of his own in mind: the other would change which.
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
