"""A job of the pool as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout

from airflow_provider_benchpool.hooks import BenchpoolHook
from airflow_provider_benchpool.triggers import BenchpoolJobTrigger
from benchpool_scheduler.client import Client, steps
from benchpool_scheduler.contract import ENDED, Job
from benchpool_scheduler.errors import BenchpoolError

JOB = "benchpool_job"
"""XCom key of the job ID, set as soon as the job was sent."""


class BenchpoolJobOperator(BaseOperator):  # type: ignore[misc]
    """Operator that sends a job and waits for its end.

    A failed job fails the task with its reason and the end of its log.

    Returns to XCom the result of ``benchpool_scheduler.client.steps.result_of``: the job's ID,
    state, exit code, page and the location of its results.

    Args:
        command: Command as a list of words, or a text that is split as a shell does.
            ``train.py --lr 0.1`` is a script of the folder.
        folder: A folder of this worker; the job runs in a copy of its files.
        output_dir: Target folder for results: an absolute path that the pool sees.
        options: As in ``benchpool.submit``: ``{"gpus": 2, "project": "vision"}``.
        benchpool_conn_id: ID of the connection.
        deferrable: Wait in the triggerer and hold no worker.

    A try of a task has one key, so repeated sending in the same try gives one job. Killing the task
    ends the job, as does ``execution_timeout``.
    """

    template_fields: Sequence[str] = (
        "command",
        "folder",
        "output_dir",
        "options",
        "benchpool_conn_id",
    )
    template_fields_renderers = {"command": "bash", "options": "json"}  # noqa: RUF012
    ui_color = "#e8f0d8"

    def __init__(
        self,
        *,
        command: str | Sequence[str],
        folder: str | None = None,
        output_dir: str | None = None,
        options: Mapping[str, Any] | None = None,
        benchpool_conn_id: str = BenchpoolHook.default_conn_name,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.command = command
        self.folder = folder
        self.output_dir = output_dir
        self.options = options or {}
        self.benchpool_conn_id = benchpool_conn_id
        usual = conf.getboolean("operators", "default_deferrable", fallback=False)
        self.deferrable = usual if deferrable is None else deferrable
        self._job: str | None = None

    @property
    def hook(self) -> BenchpoolHook:
        """Hook of the connection."""
        return BenchpoolHook(self.benchpool_conn_id)

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any] | None:
        """Send the job, and wait for it here or in the triggerer."""
        try:
            with self.hook.get_conn() as pool:
                job = steps.send(pool, self.step_of(context["ti"]))
                self._job = job.id
                context["ti"].xcom_push(key=JOB, value=job.id)
                self.log.info("%s %s: project %s, %s", job.id[:8], job.name, job.project, job.url)
                if self.deferrable and job.state not in ENDED:
                    self._defer(job)
                return self._finished(pool, pool.wait(job.id))
        except BenchpoolError as failed:
            raise AirflowException(failed.message) from failed

    def execute_complete(
        self, context: Mapping[str, Any], event: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Resume after the trigger has fired."""
        self._job = event["job"]
        if "failed" in event:
            raise AirflowException(event["failed"])
        if "late" in event:
            self.on_kill()
            raise AirflowTaskTimeout(
                f"Job {self._job} did not end within {self.execution_timeout}."
            )
        try:
            with self.hook.get_conn() as pool:
                return self._finished(pool, pool.job(event["job"]).job)
        except BenchpoolError as failed:
            raise AirflowException(failed.message) from failed

    def on_kill(self) -> None:
        """End the job of a task that is killed while it waits here."""
        if self._job is None:
            return
        with self.hook.get_conn() as pool:
            if steps.cancel(pool, self._job, "Its task in Airflow was stopped."):
                self.log.info("%s: cancelled", self._job[:8])

    def step_of(self, ti: Any) -> steps.WorkflowStep:
        """Return the submission of a try of this task."""
        return steps.WorkflowStep(
            self.command,
            key_of(ti),
            self.folder,
            self.output_dir,
            {"name": self.task_id, **self.options},
        )

    def _defer(self, job: Job) -> None:
        limit = self.execution_timeout
        self.defer(
            trigger=BenchpoolJobTrigger(
                job=job.id,
                benchpool_conn_id=self.benchpool_conn_id,
                timeout_s=None if limit is None else limit.total_seconds(),
            ),
            method_name="execute_complete",
        )

    def _finished(self, pool: Client, job: Job) -> dict[str, Any]:
        if (why := steps.why_not(pool, job)) is not None:
            raise AirflowException(why)
        self.log.info("%s %s: %s", job.id[:8], job.name, job.state.value)
        return steps.result_of(job, self.output_dir)


def key_of(ti: Any) -> str:
    """Return the key of a try of a task."""
    return steps.key_of("airflow", ti.dag_id, ti.run_id, ti.task_id, ti.map_index, ti.try_number)
