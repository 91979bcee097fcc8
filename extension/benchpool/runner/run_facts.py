"""Environment of a run, as ``environment.json`` beside its results."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchpool.runner import code_facts, commit_facts, driver_facts, kernel_facts
from benchpool_scheduler.contract.run_environment import (
    MOST_BYTES,
    NAME,
    KnownFile,
    Package,
    RunEnvironment,
)

FACTS_S = 60.0
"""Timeout for the facts of the kernel's Python, in seconds."""


@dataclass(frozen=True)
class RecordedRun:
    """Run to be recorded.

    Attributes:
        interpreter: The kernel's Python.
        folder: The folder in which the cells run.
        cells: Numbers and texts of the cells with code.
        modules: Sources sent with the job, by path.
        output: The folder of the results.
    """

    interpreter: str
    folder: Path
    cells: Sequence[tuple[int, str]]
    modules: Mapping[str, str]
    output: Path


def record(run: RecordedRun) -> None:
    """Write the record. Errors never end a training."""
    target = run.output / NAME
    try:
        data = msgspec.json.format(msgspec.json.encode(environment_of(run)), indent=1)
        if len(data) <= MOST_BYTES and _is_ours(target):
            aside = target.with_name(f".{NAME}.part")
            aside.write_bytes(data)
            os.replace(aside, target)
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as failed:
        print(f"benchpool: {NAME} was not written: {failed}", flush=True)


def environment_of(run: RecordedRun) -> RunEnvironment:
    """Return the environment of a run.

    Raises:
        OSError: A file cannot be read, or a program cannot be run.
        ValueError: An answer cannot be parsed.
        SubprocessError: A program failed or timed out.
    """
    words = [run.interpreter, kernel_facts.__file__]
    done = subprocess.run(
        words, capture_output=True, timeout=FACTS_S, check=True, stdin=subprocess.DEVNULL
    )
    facts = json.loads(done.stdout)
    return RunEnvironment(
        job=os.environ.get("BENCHPOOL_JOB_ID", ""),
        attempt=int(os.environ.get("BENCHPOOL_ATTEMPT") or 1),
        python=facts["python"],
        platform=facts["platform"],
        packages=[Package(*each) for each in facts["packages"]],
        driver=driver_facts.driver(),
        cuda=facts["cuda"] or driver_facts.toolkit(),
        image=os.environ.get("BENCHPOOL_JOB_IMAGE"),
        commit=commit_facts.commit_of(run.folder),
        modules=_modules(run),
        data=code_facts.data_of([text for _, text in run.cells], run.folder),
        seeds=code_facts.seeds_of(run.cells),
        variables=sorted(os.environ)[:1000],
    )


def _is_ours(target: Path) -> bool:
    """Return whether a file may be written: it is new, or from an earlier attempt."""
    if not target.exists():
        return True
    try:
        msgspec.json.decode(target.read_bytes()[:MOST_BYTES], type=RunEnvironment)
    except msgspec.DecodeError:
        return False
    return True


def _modules(run: RecordedRun) -> list[KnownFile]:
    """Return the modules, with paths relative to the run's folder if they are in it."""
    folder = run.folder.resolve()
    found = []
    for path, text in run.modules.items():
        data, there = text.encode(), Path(path)
        named = there.relative_to(folder) if there.is_relative_to(folder) else there
        found.append(KnownFile(str(named), len(data), hashlib.sha256(data).hexdigest()))
    return sorted(found, key=lambda it: it.path)
