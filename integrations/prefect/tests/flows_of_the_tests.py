"""Flows that Prefect runs in these tests: ``python flows_of_the_tests.py NAME RESULTS``."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import signal
import sys
from pathlib import Path

from prefect import flow

from benchpool_scheduler.client import steps
from prefect_benchpool import run_job


@flow
def three_steps(results: str) -> None:
    """Prepare, train on the prepared data, and check the result."""
    code = str(Path(__file__).parent / "code")
    prepared = run_job("prepare.py", folder=code, output_dir=results, options={"name": "prepare"})
    reading = f"print(open('{prepared['results']}/data').read())"
    trained = run_job(
        [sys.executable, "-c", reading], options={"name": "train", "gpus": 2, "project": "vision"}
    )
    run_job(["echo", trained["job"]], options={"name": "look"})


@flow
def fails(results: str) -> None:
    """Fail within the job."""
    run_job([sys.executable, "-c", "print('epoch 1'); raise ValueError('the data is empty')"])


@flow
def runs_long(results: str) -> None:
    """Run until the job is cancelled."""
    run_job(["sleep", "3600"], options={"name": "runs_long"})


@flow
def sent_twice(results: str) -> None:
    """Submit the same job again in the same try, as after a crash before it was recorded."""
    once = steps.send

    def again(client: object, step: steps.WorkflowStep) -> object:
        once(client, step)  # type: ignore[arg-type]
        return once(client, step)  # type: ignore[arg-type]

    steps.send = again  # type: ignore[assignment]
    run_job(["echo", "once"], options={"name": "twice"})


if __name__ == "__main__":
    # A shell lets its background processes ignore it, and they pass that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    {each.name: each for each in (three_steps, fails, runs_long, sent_twice)}[sys.argv[1]](
        sys.argv[2]
    )
