"""A complete Airflow on this machine: API server, scheduler, triggerer and DAG processor."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchpool_support import direct
from benchpool_support.loopback import answers, free_port
from benchpool_support.waiting import family, until

ENDED = {"success", "failed", "upstream_failed", "skipped"}
PARTS = (
    ("api-server", "--host", "127.0.0.1"),
    ("scheduler", "--skip-serve-logs"),
    ("triggerer", "--skip-serve-logs"),
    ("dag-processor",),
)
"""Commands of the Airflow processes; all of them listen on the loopback only."""


@dataclass(frozen=True)
class AirflowSite:
    """Running Airflow.

    Attributes:
        api: Address of its API.
        token: Token for its API.
    """

    api: str
    token: str

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request to its API and return the JSON of the response."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        answer = direct.request(
            method, f"{self.api}/api/v2/{path}", json=body, headers=headers, timeout=60
        )
        assert answer.status_code < 400, answer.text
        return answer.json()

    def begin(self, dag: str) -> str:
        """Start a run of a DAG and return its ID."""
        until(lambda: self._has(dag), f"Airflow has read {dag}")
        self.ask("PATCH", f"dags/{dag}", {"is_paused": False})
        run = self.ask("POST", f"dags/{dag}/dagRuns", {"logical_date": None})
        return str(run["dag_run_id"])

    def _has(self, dag: str) -> bool:
        return any(one["dag_id"] == dag for one in self.ask("GET", "dags")["dags"])

    def states(self, dag: str, run: str) -> dict[str, str | None]:
        """Return the state of each task of a run."""
        tasks = self.ask("GET", f"dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]
        return {one["task_id"]: one["state"] for one in tasks}

    def until(self, dag: str, run: str, task: str, *states: str) -> str:
        """Wait until a task is in one of these states, and return that state."""

        def reached() -> str | None:
            state = self.states(dag, run).get(task)
            assert state in states or state not in ENDED, f"{task}: {state}\n" + self.log(
                dag, run, task
            )
            return state if state in states else None

        found = until(reached, f"{task} is {' or '.join(states)}")
        assert found is not None
        return found

    def ended(self, dag: str, run: str) -> dict[str, str | None]:
        """Wait until all tasks of a run have ended, and return their states."""
        until(lambda: ENDED.issuperset(self.states(dag, run).values()), f"{dag} has ended")
        return self.states(dag, run)

    def failures(self, dag: str, run: str) -> str:
        """Return the logs of the failed tasks of a run."""
        failed = [task for task, state in self.states(dag, run).items() if state == "failed"]
        return "\n".join(f"{task}:\n{self.log(dag, run, task)}" for task in failed)

    def xcom(self, dag: str, run: str, task: str, key: str = "return_value") -> Any:
        """Return the XCom value that a task has left for later tasks."""
        path = f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/{key}"
        value = self.ask("GET", path)["value"]
        return json.loads(value) if isinstance(value, str) and value[:1] in "{[" else value

    def log(self, dag: str, run: str, task: str, number: int = 1) -> str:
        """Return the log of a try of a task."""
        path = f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{number}?full_content=true"
        content = self.ask("GET", path)["content"]
        return "\n".join(one if isinstance(one, str) else json.dumps(one) for one in content)

    def mark(self, dag: str, run: str, task: str, state: str) -> None:
        """Set the state of a task, as a user does who marks it as failed."""
        path = f"dags/{dag}/dagRuns/{run}/taskInstances/{task}"
        self.ask("PATCH", path, {"new_state": state})


@contextmanager
def airflow_site(
    programs: Path, home: Path, dags: Path, connections: Mapping[str, Mapping[str, str]]
) -> Iterator[AirflowSite]:
    """Start an Airflow in a new folder, and stop all its processes at the end."""
    home.mkdir(parents=True)
    port = free_port()
    own = {f"AIRFLOW_CONN_{name.upper()}": json.dumps(one) for name, one in connections.items()}
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        **own,
        **_settings(home, dags, port),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
    }
    airflow = str(programs / "airflow")
    subprocess.run(
        [airflow, "db", "migrate"], env=environ, check=True, capture_output=True, cwd=home
    )
    parts = [_started(airflow, part, environ, home, port) for part in PARTS]
    api = f"http://127.0.0.1:{port}"
    try:
        until(
            lambda: answers(f"{api}/api/v2/version") or _lost(parts, home), "Airflow's API answers"
        )
        token = direct.get(f"{api}/auth/token", timeout=60).json()["access_token"]
        yield AirflowSite(api, token)
    finally:
        every = [one for part in parts for one in family(part.pid)]
        for part in parts:
            part.terminate()
        for part in parts:
            try:
                part.wait(5)
            except subprocess.TimeoutExpired:
                part.kill()
        for one in every:
            if one.is_running():
                one.kill()


def _settings(home: Path, dags: Path, port: int) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        # A busy machine holds a lock of SQLite longer than its timeout of 5 s.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db?timeout=120",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(32),
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(32),
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "NO_PROXY": "127.0.0.1,localhost",
    }


def _started(
    airflow: str, part: tuple[str, ...], environ: Mapping[str, str], home: Path, port: int
) -> subprocess.Popen[bytes]:
    words = [airflow, *part, *(["--port", str(port)] if part[0] == "api-server" else [])]
    with (home / f"{part[0]}.log").open("wb") as log:
        return subprocess.Popen(words, env=environ, cwd=home, stdout=log, stderr=subprocess.STDOUT)


def _lost(parts: list[subprocess.Popen[bytes]], home: Path) -> bool:
    for part, (name, *_) in zip(parts, PARTS, strict=True):
        assert part.poll() is None, f"{name} ended:\n{(home / f'{name}.log').read_text()[-4000:]}"
    return False
