"""Print what the trackers show, as JSON: the runs by tracker, read with the trackers' libraries.

A run is ``{"id": ID, "name": NAME, "status": STATUS, "note": TEXT, "steps": [STEP]}``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

Run = dict[str, Any]


def mlflow() -> list[Run]:
    """Return the runs of all experiments in the store."""
    client = import_module("mlflow").MlflowClient()
    experiments = [one.experiment_id for one in client.search_experiments()]
    return [
        {
            "id": run.info.run_id,
            "name": run.info.run_name,
            "status": run.info.status,
            "note": run.data.tags.get("mlflow.note.content", ""),
            "steps": [one.step for one in client.get_metric_history(run.info.run_id, "loss")],
        }
        for run in client.search_runs(experiments)
    ]


def wandb() -> list[Run]:
    """Return the runs of offline folders, which W&B merges by ID when they are synchronized."""
    record = import_module("wandb.proto.wandb_internal_pb2").Record
    runs: dict[str, Run] = {}
    for path in sorted(Path(os.environ["SHOWN_WANDB"]).rglob("offline-run-*/*.wandb")):
        run: Run = {}
        for text in _entries(path.read_bytes()):
            one = record.FromString(text)
            kind = one.WhichOneof("record_type")
            if kind == "run" and not run:
                known = {"id": one.run.run_id, "name": one.run.display_name, "note": one.run.notes}
                run = runs.setdefault(one.run.run_id, {**known, "steps": [], "segments": 0})
                run["segments"] += 1
            elif kind == "history":
                run["steps"].append(one.history.step.num)
            elif kind == "exit":
                run["status"] = f"exit code {one.exit.exit_code}"
    return list(runs.values())


def _entries(log: bytes) -> Iterator[bytes]:
    """Return the records of a file in LevelDB's log format, after its header of seven bytes."""
    at, parts = 7, b""
    while at + 7 <= len(log):
        if 32768 - at % 32768 < 7:  # the rest of a block is padding
            at += 32768 - at % 32768
            continue
        length, kind = int.from_bytes(log[at + 4 : at + 6], "little"), log[at + 6]
        parts += log[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def trackio() -> list[Run]:
    """Return the runs in the folder of Trackio."""
    storage = import_module("trackio.sqlite_storage").SQLiteStorage
    return [
        {
            "id": run,
            "name": run,
            "status": "",
            "note": "",
            "steps": [one["step"] for one in storage.get_logs(project, run)],
        }
        for project in storage.get_projects()
        for run in storage.get_runs(project)
    ]


def tensorboard() -> list[Run]:
    """Return the folders with event files, each of which TensorBoard shows as a run."""
    module = import_module("tensorboard.backend.event_processing.event_multiplexer")
    shown = module.EventMultiplexer()
    shown.AddRunsFromDirectory(os.environ["SHOWN_TENSORBOARD"])
    shown.Reload()
    return [
        {
            "id": run,
            "name": run,
            "status": "",
            "note": "",
            "steps": [one.step for one in shown.Scalars(run, "loss")],
        }
        for run in shown.Runs()
    ]


if __name__ == "__main__":
    print(json.dumps({each: globals()[each]() for each in sys.argv[1:]}))
