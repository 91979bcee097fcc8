"""Sensor that waits for a job from another source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator
from airflow.sdk.bases.sensor import PokeReturnValue
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowSensorTimeout

from airflow_provider_benchpool.hooks import BenchpoolHook
from airflow_provider_benchpool.triggers import BenchpoolJobTrigger
from benchpool_scheduler.client import steps
from benchpool_scheduler.contract import ENDED
from benchpool_scheduler.errors import BenchpoolError


class BenchpoolJobSensor(BaseSensorOperator):  # type: ignore[misc]
    """Sensor that waits for a job, and fails with its reason if it does not succeed.

    Killing the task does not end the job.

    Args:
        job: Its id.
        benchpool_conn_id: The connection.
        deferrable: Wait in the triggerer and hold no worker.
    """

    template_fields: Sequence[str] = ("job", "benchpool_conn_id")

    def __init__(
        self,
        *,
        job: str,
        benchpool_conn_id: str = BenchpoolHook.default_conn_name,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.job = job
        self.benchpool_conn_id = benchpool_conn_id
        usual = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = usual if deferrable is None else deferrable

    def execute(self, context: Mapping[str, Any]) -> Any:
        """Wait here or in the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        self.defer(
            trigger=BenchpoolJobTrigger(
                job=self.job,
                benchpool_conn_id=self.benchpool_conn_id,
                timeout_s=self.timeout,
                cancels=False,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Mapping[str, Any], event: Mapping[str, Any]) -> Any:
        """Resume after the trigger has fired."""
        if "failed" in event:
            raise AirflowException(event["failed"])
        if "late" in event:
            raise AirflowSensorTimeout(f"Job {self.job} has not ended after {self.timeout} s.")
        return self.poke(context).xcom_value

    def poke(self, context: Mapping[str, Any]) -> PokeReturnValue:
        """Check the job once. Errors: AirflowException for a job that did not succeed."""
        try:
            with BenchpoolHook(self.benchpool_conn_id).get_conn() as pool:
                job = pool.job(self.job).job
                if job.state not in ENDED:
                    return PokeReturnValue(is_done=False)
                why = steps.why_not(pool, job)
        except BenchpoolError as failed:
            raise AirflowException(failed.message) from failed
        if why is not None:
            raise AirflowException(why)
        return PokeReturnValue(is_done=True, xcom_value=steps.result_of(job, None))
