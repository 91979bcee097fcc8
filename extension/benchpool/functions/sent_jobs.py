"""Jobs of a ``map``: a list that is awaited and cancelled together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, overload

from benchpool_scheduler.contract import ENDED
from benchpool_scheduler.phrases import count

if TYPE_CHECKING:
    from benchpool.handles import JobHandle


class SentJobs(Sequence["JobHandle"]):
    """Jobs in the order of their calls. In a notebook they show themselves live.

    Args:
        jobs: Their handles.
        tag: A label that they all have; ``benchpool jobs --tag`` lists them by it.
    """

    def __init__(self, jobs: Iterable[JobHandle], tag: str) -> None:
        self._jobs = list(jobs)
        self.tag = tag

    @overload
    def __getitem__(self, at: int) -> JobHandle: ...

    @overload
    def __getitem__(self, at: slice) -> list[JobHandle]: ...

    def __getitem__(self, at: int | slice) -> JobHandle | list[JobHandle]:
        return self._jobs[at]

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[JobHandle]:
        return iter(self._jobs)

    def append(self, job: JobHandle) -> None:
        """Add a job."""
        self._jobs.append(job)

    def wait(self) -> SentJobs:
        """Wait until all jobs have ended, with any outcome."""
        for each in self._jobs:
            each.wait()
        return self

    def cancel(self, reason: str | None = None) -> SentJobs:
        """Cancel the jobs that have not ended. Results of the other jobs stay."""
        for each in self._jobs:
            if not each.refresh().ended:
                each.cancel(reason)
        return self

    def refresh(self) -> SentJobs:
        """Read the facts of all jobs again."""
        for each in self._jobs:
            if not each.ended:
                each.refresh()
        return self

    def __repr__(self) -> str:
        return line_of(self._jobs)

    def _ipython_display_(self) -> None:
        from benchpool.functions.jobs_display import show

        show(self)


def line_of(jobs: Sequence[JobHandle]) -> str:
    """Return a summary of jobs, as last read: ``8 jobs: 3 succeeded, 1 running, 4 queued``."""
    states = Counter(str(each.facts.state) for each in jobs)
    summary = ", ".join(f"{number} {state}" for state, number in states.most_common())
    return f"{count(len(jobs), 'job')}: {summary}" if summary else "no jobs"


def ended(jobs: Sequence[JobHandle]) -> int:
    """Return the number of ended jobs, as last read."""
    return sum(each.facts.state in ENDED for each in jobs)
