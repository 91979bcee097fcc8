"""``python -m benchpool.metrics.close_runs CODE``: close MLflow runs that a killed process left.

The supervisor of a worker runs it in the worker's place, with its exit code, after the worker's
last process has ended. The status depends on the notice (pause or cancel), else on the exit code.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from benchpool.checkpoint import notices
from benchpool.metrics import begun_runs

ENDS = {"pause": "SCHEDULED", "cancel": "KILLED"}
"""MLflow status of a run whose job was asked to stop, by the kind of the notice."""


def status_of(code: int, notice: str | None) -> str:
    """Return the MLflow status for a run that was left open.

    >>> status_of(137, "pause"), status_of(143, "cancel"), status_of(139, None), status_of(0, None)
    ('SCHEDULED', 'KILLED', 'FAILED', 'FINISHED')
    """
    return "FINISHED" if code == 0 else ENDS.get(notice or "", "FAILED")


def main(arguments: list[str]) -> None:
    """Close each run that is left open."""
    status = status_of(int(arguments[0]), notices.notice().get("kind"))
    for run in begun_runs.recorded():
        if run.get("open") and run.get("tracker") == "mlflow":
            try:
                _close(run, status)
            except Exception as failed:
                what = f"the run {run.get('id')} of MLflow could not be closed"
                print(f"benchpool: {what} ({type(failed).__name__}: {failed})", flush=True)


def _close(run: Mapping[str, Any], status: str) -> None:
    from mlflow.tracking import MlflowClient  # type: ignore[import-not-found]

    client = MlflowClient(tracking_uri=run.get("store"))
    # The run may have been ended meanwhile, with a more accurate status.
    if client.get_run(run["id"]).info.status == "RUNNING":
        client.set_terminated(run["id"], status)
        print(f"benchpool: the run {run['id']} of MLflow was left open; its status is {status} now")
    begun_runs.ended("mlflow", run["id"])


if __name__ == "__main__":
    main(sys.argv[1:])
