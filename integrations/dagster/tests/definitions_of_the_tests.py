"""Dagster definitions of these tests."""

# mypy: disable-error-code="untyped-decorator"

import sys
from pathlib import Path
from typing import Any

from dagster import AssetExecutionContext, Definitions, OpExecutionContext, asset, job, op

from dagster_benchpool import PipesBenchpoolClient

POOL = PipesBenchpoolClient()


@asset
def trained(context: AssetExecutionContext, pool: PipesBenchpoolClient) -> Any:
    """Report from within the job."""
    result = pool.run(
        context=context,
        command=[sys.executable, "train.py"],
        folder=str(Path(__file__).parent / "code"),
        options={"gpus": 2, "name": "trained"},
        extras={"rate": 0.1},
    ).get_materialize_result()
    context.log.info(f"the job reported a loss of {result.metadata['loss'].value}")
    return result


@op
def fails(context: OpExecutionContext) -> None:
    """Fail within the job."""
    raising = "print('epoch 1'); raise ValueError('the data is empty')"
    POOL.run(context=context, command=[sys.executable, "-c", raising])


@op
def twice(context: OpExecutionContext) -> None:
    """Submit the same job again in the same try, and another job."""
    for word in ("once", "once", "other"):
        POOL.run(context=context, command=["echo", word], options={"name": "twice"})


@op
def runs_long(context: OpExecutionContext) -> None:
    """Run until the job is cancelled."""
    POOL.run(context=context, command=["sleep", "3600"], options={"name": "runs_long"})


@job
def failing() -> None:
    """Run the failing op."""
    fails()


@job
def sent_twice() -> None:
    """Run the op that submits a job twice."""
    twice()


@job
def long() -> None:
    """Run the long op."""
    runs_long()


definitions = Definitions(
    assets=[trained], jobs=[failing, sent_twice, long], resources={"pool": POOL}
)
