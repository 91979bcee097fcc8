"""Jobs as steps of workflow systems: Airflow, Prefect, Dagster.

Their integrations are thin layers over this module. A step is a command and a folder, a key makes a
repeat safe, and its result is plain values.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchpool_scheduler.client import code_warnings, snapshot
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import (
    CommandEntry,
    Entry,
    Job,
    JobSubmission,
    ScriptEntry,
    Source,
    State,
)
from benchpool_scheduler.contract.options import OPTIONS, fields_of
from benchpool_scheduler.errors import InvalidInput, Refused

LAST_LINES = 20
"""Number of log lines in the message about a failed job."""

_TAIL = 16 * 1024
_NAMES = {option.name for option in OPTIONS} - {"parameters"}


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """Step that runs as a job.

    Attributes:
        command: Words, or a text that is split like in a shell but not run by one. A first word
            that ends in ``.py`` is a script of the folder.
        key: Idempotency key. The same key is the same job, even after a crash of the sender.
        folder: Folder whose files are sent. The job runs in a copy of them.
        output_dir: Target folder of the results: an absolute path that the pool can access.
        options: Options of ``benchpool.submit``: ``gpus``, ``project``, ``time_limit`` and so on.
    """

    command: str | Sequence[str]
    key: str
    folder: Path | str | None = None
    output_dir: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def send(client: Client, step: WorkflowStep) -> Job:
    """Submit a step, or return the job that already has its key.

    Left-out files and code warnings are logged.

    Errors: InvalidInput if there is nothing to run, for a script without a folder, and for an
    unknown option. Also those of ``submit``.
    """
    entry = entry_of(step)
    must = [entry.path] if isinstance(entry, ScriptEntry) else []
    taken = None if step.folder is None else snapshot.take(Path(step.folder), must=must)
    submission = JobSubmission(
        entry=entry,
        key=step.key,
        files=[] if taken is None else list(taken.files),
        output_dir=step.output_dir,
        source=Source(kind="python"),
        **asked(step.options),
    )
    if taken is not None and step.folder is not None:
        found = code_warnings.of_submission(Path(step.folder), submission)
        warnings = [f"{each.where}, line {each.line}: {each.text}" for each in found]
        for sentence in [*taken.sentences(), *warnings]:
            logging.getLogger(__name__).warning("%s.", sentence)
        client.preview(submission)  # refusals come before any upload
        snapshot.upload(client, taken.contents)
    return client.submit(submission)


def key_of(of: str, *parts: str | int) -> str:
    """Return the key of a step. Different parts give different keys.

    Args:
        of: Owner of the step, such as ``airflow``. The key begins with it.
        parts: Identification of this try of the step.

    >>> key_of("airflow", "a", "b/c") == key_of("airflow", "a/b", "c")
    False
    >>> key_of("airflow", "dag", "run", "task", -1, 1)[:16]
    'airflow-1b299c88'
    """
    return f"{of}-{sha256(json.dumps(parts).encode()).hexdigest()[:40]}"


def entry_of(step: WorkflowStep) -> Entry:
    """Return the entry that a step runs. Errors: InvalidInput.

    >>> entry_of(WorkflowStep("train.py --lr 0.1", "k", Path()))
    ScriptEntry(path='train.py', args=['--lr', '0.1'])
    >>> entry_of(WorkflowStep(["echo", "a b"], "k"))
    CommandEntry(argv=['echo', 'a b'])
    """
    words = shlex.split(step.command) if isinstance(step.command, str) else list(step.command)
    if not words:
        raise InvalidInput("There is nothing to run. Give a command.", field="command")
    if not words[0].endswith(".py") or words[0].startswith("/"):
        return CommandEntry(words)
    if step.folder is None:
        raise InvalidInput(
            f"{words[0]} is a script, but no folder is sent. Give the folder that contains it.",
            field="folder",
        )
    return ScriptEntry(words[0], words[1:])


def asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a submission for these options. Errors: InvalidInput.

    >>> asked({"gpus": 2, "time_limit": "90m"})["time_limit_s"]
    5400
    """
    for name in options:
        if name not in _NAMES:
            raise InvalidInput(
                f"There is no option {name}. Options: {', '.join(sorted(_NAMES))}.", field=name
            )
    found = fields_of(options)
    found.pop("parameters", None)
    return found


def cancel(client: Client, id_: str, reason: str) -> bool:
    """Cancel a job. Return False if ``cancel`` is refused, as for a job that has ended."""
    try:
        client.cancel(id_, reason)
    except Refused:
        return False
    return True


def result_of(job: Job, output_dir: str | None) -> dict[str, Any]:
    """Return the facts about a job for later steps, as plain values."""
    return {
        "job": job.id,
        "name": job.name,
        "project": job.project,
        "state": job.state.value,
        "exit_code": job.exit_code,
        "results": output_dir,
        "url": job.url,
    }


def why_not(client: Client, job: Job) -> str | None:
    """Return why an ended job did not succeed, with the end of its log. None if it succeeded."""
    if job.state is State.SUCCEEDED:
        return None
    if job.state is State.CANCELLED:
        return f"job {job.id[:8]} ({job.name}) was cancelled."
    reason = job.reason.text if job.reason else f"{job.name} failed."
    log = client.log(job.id, offset=-_TAIL).data.decode("utf-8", "replace")
    lines = [f"job {job.id[:8]}: {reason}", *log.splitlines()[-LAST_LINES:]]
    return "\n".join(lines)
