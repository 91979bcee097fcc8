"""Launch parameters of a worker, from the job's submission."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
)
from benchpool_scheduler.runtime import Launch, SnapshotEntry, WorkerId
from benchpool_scheduler.service.execution import containers, tracking
from benchpool_scheduler.service.lifecycle import origin
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import AttemptRecord, JobRecord

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR")
"""Variables of the service's environment that a worker gets. Administrators may add names."""


class NoAccount(Exception):
    """A job must run as a system account that does not exist. The text is for the user."""


def allowed_environment(environ: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the environment variables that a worker may get, by name.

    >>> allowed_environment({"PATH": "/bin", "JUPYTERHUB_API_TOKEN": "s3cret", "PROXY": "p"},
    ...     ["PROXY"])
    {'PATH': '/bin', 'PROXY': 'p'}
    """
    return {name: environ[name] for name in (*PASSED_ON, *more) if name in environ}


@dataclass(frozen=True, slots=True)
class Launcher:
    """Builds the ``Launch`` of each worker of an attempt."""

    observed: SchedulerState

    def launch(
        self, job: JobRecord, attempt: AttemptRecord, index: int, submission: JobSubmission
    ) -> Launch:
        """Return the launch parameters of a worker. Errors: NoAccount, OSError."""
        if self.observed.settings.containers is not None:
            return containers.launch(
                self.observed, self.observed.settings.containers, job, attempt, index, submission
            )
        worker = next(w for w in attempt.workers if w.index == index)
        account = job.user if self.observed.settings.accounts == "system" else None
        home = self._identity(job.user, account)
        settings = self.observed.settings
        results = submission.output_dir or settings.job_folder(job.id) / "output"
        return Launch(
            worker=WorkerId(job.id, attempt.attempt, index),
            argv=self._argv(job, submission, account),
            env=tracking.with_names(
                {
                    **settings.environment,
                    "PYTHONUNBUFFERED": "1",
                    **home,
                    **submission.env,
                    **containers.identity(job, attempt),
                },
                job,
                index,
                base_url=settings.base_url,
                results=Path(results),
            ),
            gpus=worker.gpus,
            working_dir=Path(submission.working_dir) if submission.working_dir else None,
            files=tuple(
                SnapshotEntry(file.path, file.sha256, file.executable) for file in submission.files
            ),
            output_dir=Path(submission.output_dir) if submission.output_dir else None,
            account=account,
            grace_s=self.observed.now.configuration.policy.grace_s,
            time_limit_s=job.spec.time_limit_s,
            nodes=tuple(w.node for w in attempt.workers),
            port=attempt.port,
            cpus=job.spec.cpus,
            memory_gib=job.spec.memory_gib,
            origin=origin.encode(job, attempt, submission),
        )

    def _argv(
        self, job: JobRecord, submission: JobSubmission, account: str | None
    ) -> tuple[str, ...]:
        interpreter = submission.interpreter or sys.executable
        match submission.entry:
            case ScriptEntry(path=path, args=args):
                return (interpreter, path, *args)
            case ModuleEntry(module=module, args=args):
                return (interpreter, "-m", module, *args)
            case CommandEntry(argv=argv):
                return tuple(argv)
            case NotebookEntry(notebook=sha256, name=name):
                # -P: a file in the notebook's folder must not replace a module of the runner.
                return (
                    *(sys.executable, "-P", "-m", "benchpool.runner", "notebook"),
                    *("--notebook", str(self._notebook(job, sha256, account)), "--name", name),
                    *("--interpreter", interpreter, "--cwd", submission.working_dir or "."),
                    *("--output", str(self.observed.settings.job_folder(job.id) / "output")),
                    *containers.filled_in(submission),
                )
            case PodsEntry():
                return ()  # the owner's pod specification defines the command

    def _notebook(self, job: JobRecord, sha256: str, account: str | None) -> Path:
        """Return the path at which the worker can read the notebook.

        Objects belong to the service. Another account gets a copy in the job's folder.
        """
        source = self.observed.settings.state / "objects" / sha256[:2] / sha256
        if account is None:
            return source
        target = self.observed.settings.job_folder(job.id) / "notebook.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
        target.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
            file.write(source.read_bytes())
            os.fchown(file.fileno(), _account(account).pw_uid, -1)
        return target

    def _identity(self, user: str, account: str | None) -> dict[str, str]:
        if account is not None:
            found = _account(account)
            return {
                "HOME": found.pw_dir,
                "USER": found.pw_name,
                "LOGNAME": found.pw_name,
                "SHELL": found.pw_shell or "/bin/sh",
            }
        homes = self.observed.settings.state / "homes"
        home = homes / user
        # The Hub accepts any text as a user name. Only a plain name is used as a folder.
        if home.parent == homes and user not in (".", "..") and homes.is_dir():
            home.mkdir(exist_ok=True)  # missing for a user who never had a notebook server
            return {"HOME": str(home)}
        return {}


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise NoAccount(
            f"this machine has no account {name!r}, as which the job would run; "
            "ask an administrator to create it."
        ) from None
