"""DAGs that Airflow runs in these tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from airflow_provider_benchpool.operators import BenchpoolJobOperator
from airflow_provider_benchpool.sensors import BenchpoolJobSensor
from benchpool_scheduler.client import steps

PYTHON = sys.executable
RESULTS = os.environ["BENCHPOOL_TEST_RESULTS"]
"""Folder for results that the pool can read."""

BEGINNING = datetime(2026, 1, 1)  # noqa: DTZ001  # Airflow's own zone
USUAL: dict[str, Any] = {"schedule": None, "start_date": BEGINNING, "catchup": False}


class SentTwice(BenchpoolJobOperator):
    """Operator that repeats its submission, as after a worker lost before it recorded the job."""

    def execute(self, context: Mapping[str, Any]) -> dict[str, Any] | None:
        """Send the job, and repeat everything in the same try."""
        with self.hook.get_conn() as pool:
            steps.send(pool, self.step_of(context["ti"]))
        return super().execute(context)


with DAG("three_steps", **USUAL):
    prepare = BenchpoolJobOperator(
        task_id="prepare",
        command="prepare.py {{ run_id }}",
        folder=str(Path(__file__).parent / "code"),
        output_dir=f"{RESULTS}/{{{{ run_id }}}}",
        deferrable=False,
    )
    train = BenchpoolJobOperator(
        task_id="train",
        command=[
            PYTHON,
            "-c",
            "print(open('{{ ti.xcom_pull('prepare')['results'] }}/data').read())",
        ],
        options={"gpus": 2, "project": "vision", "name": "train-{{ ti.task_id }}"},
        deferrable=True,
    )
    look = BenchpoolJobSensor(
        task_id="look", job="{{ ti.xcom_pull('train')['job'] }}", deferrable=True
    )
    prepare >> train >> look

with DAG("fails", **USUAL):
    for deferrable in (True, False):
        BenchpoolJobOperator(
            task_id="deferred" if deferrable else "held",
            command=[PYTHON, "-c", "print('epoch 1'); raise ValueError('the data is empty')"],
            deferrable=deferrable,
        )

with DAG("runs_long", **USUAL):
    for deferrable in (True, False):
        BenchpoolJobOperator(
            task_id="deferred" if deferrable else "held",
            command=["sleep", "3600"],
            deferrable=deferrable,
        )
    BenchpoolJobOperator(
        task_id="late",
        command=["sleep", "3600"],
        deferrable=True,
        execution_timeout=timedelta(seconds=3),
    )

with DAG("sent_twice", **USUAL):
    SentTwice(task_id="train", command=["echo", "once"], deferrable=True)
