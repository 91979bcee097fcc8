"""Jobs of the pool as objects in a kernel without benchpool."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as TooLate
from pathlib import Path
from typing import Any

from benchpool.failures import failure
from benchpool.foreign import link
from benchpool.values.keeping import FOLDER, RESULT
from benchpool.values.reading import StoredValues


class KernelJob:
    """Job of the pool: its state, log, files and values, with the names of ``benchpool.Job``."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self._facts = dict(facts)
        self._fetched: tempfile.TemporaryDirectory[str] | None = None
        self._values: StoredValues | None = None

    @property
    def id(self) -> str:
        """Job ID, 26 characters."""
        return str(self._facts["id"])

    @property
    def name(self) -> str:
        """Name of the job."""
        return str(self._facts["name"])

    @property
    def state(self) -> str:
        """Present state, read from the pool, such as ``queued``, ``running`` or ``succeeded``."""
        return str(self._ask("facts")["state"])

    def wait(self, timeout: float | None = None) -> KernelJob:
        """Wait until the job has ended and return it.

        Raises:
            TimeoutError: It did not end within ``timeout`` seconds; it continues to run.
        """
        if not self._facts["ended"] and not self._ask("wait", timeout=timeout)["ended"]:
            raise TooLate(
                f"job {self.id[:8]} ({self.name}) has not ended within {timeout:g} s; "
                "the job continues"
            )
        return self

    def logs(self) -> str:
        """Return the log so far."""
        return str(link.call({"do": "job", "verb": "logs", "id": self.id}))

    def pause(self) -> KernelJob:
        """Pause the job: it leaves its GPUs and keeps its progress until it is resumed."""
        self._ask("pause")
        return self

    def resume(self) -> KernelJob:
        """Queue it again after a pause."""
        self._ask("resume")
        return self

    def cancel(self) -> KernelJob:
        """Cancel the job permanently."""
        self._ask("cancel")
        return self

    def result(self, timeout: float | None = None) -> Any:
        """Wait until the job has ended; return the result of its function, else its values by name.

        Raises:
            JobFailed: The job failed; the text contains the traceback.
            concurrent.futures.CancelledError: The job was cancelled.
            TimeoutError: The job did not end in time; it continues to run.
        """
        self.wait(timeout)
        if self._facts["state"] == "cancelled":
            raise CancelledError(f"job {self.id[:8]} ({self.name}) was cancelled")
        if self._facts["state"] != "succeeded":
            message = f"job {self.id[:8]}: {self._facts['reason']}"
            raise failure(message, self.id, self.logs())
        values = self.values
        if not values.returns:
            return values
        return self[RESULT] if RESULT in {*values, *values.left_out} else None

    def __getitem__(self, name: str) -> Any:
        """Wait until the job has ended; return the value that its cells left in a name."""
        values = self.wait().values
        if name in values:
            return values[name]
        why = values.left_out.get(name, f"{name} was not kept")
        there = ", ".join(each for each in values if each != RESULT) or "nothing"
        raise KeyError(f"job {self.id[:8]}: {why}. It kept {there}.")

    @property
    def values(self) -> StoredValues:
        """Values that the job's cells have left so far, by name."""
        if self._values is not None:
            return self._values
        found = self._results()
        folder = Path(found["folder"]) / FOLDER
        values = StoredValues(folder, pickles=found["own"], device="cpu")
        if self._facts["ended"]:
            self._values = values
        return values

    @property
    def files(self) -> list[Path]:
        """Result files of the job that can be read here, sorted."""
        folder = Path(self._results()["folder"])
        found = (path for path in folder.rglob("*") if path.is_file())
        return sorted(path for path in found if FOLDER not in path.relative_to(folder).parts)

    def _results(self) -> dict[str, Any]:
        if self._fetched is None:
            self._fetched = tempfile.TemporaryDirectory(prefix="benchpool-results-")
        into = self._fetched.name
        found: dict[str, Any] = link.call(
            {"do": "job", "verb": "results", "id": self.id, "folder": into}
        )
        return found

    def _ask(self, verb: str, **more: Any) -> dict[str, Any]:
        self._facts = link.call({"do": "job", "verb": verb, "id": self.id, **more})
        return self._facts

    def __repr__(self) -> str:
        return str(self._facts["line"])


class KernelJobs(list):  # type: ignore[type-arg]  # Python 3.9 shows it as a list
    """Jobs of a ``map``, in the order of their calls."""

    def wait(self) -> KernelJobs:
        """Wait until all jobs have ended, with any outcome."""
        for each in self:
            each.wait()
        return self

    def cancel(self) -> KernelJobs:
        """Cancel the jobs that have not ended."""
        for each in self:
            if not link.call({"do": "job", "verb": "facts", "id": each.id})["ended"]:
                each.cancel()
        return self


class Shown:
    """Something that was sent and has no object here: a sweep, an array or a service."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def job(id_: str) -> KernelJob:
    """Return the job with this ID, or with an ID that starts with it (at least 4 characters)."""
    return KernelJob(link.call({"do": "job", "verb": "facts", "id": id_}))


def shown(found: Mapping[str, Any]) -> Any:
    """Return the object for the answer to a submission; a text is printed."""
    if "job" in found:
        return KernelJob(found["job"])
    if "jobs" in found:
        return KernelJobs(map(KernelJob, found["jobs"]))
    if "help" in found:
        print(found["help"])
        return None
    return Shown(found["text"])
