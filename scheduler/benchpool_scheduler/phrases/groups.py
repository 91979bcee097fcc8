"""Texts for dependencies between jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class JobWithOutcome(Protocol):
    """Job that another job runs after; ``outcome`` is the state in which it ended.

    ``tasks`` is the number of tasks of an array, else 0.
    """

    @property
    def job(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def outcome(self) -> str | None: ...

    @property
    def tasks(self) -> int: ...


def runs_after(awaits: Sequence[JobWithOutcome]) -> str:
    """Return the jobs that a job runs after; empty for none.

    >>> from types import SimpleNamespace as It
    >>> prep = It(job="41ab23cd7k2m", name="prep", outcome="succeeded", tasks=0)
    >>> runs_after([prep, It(job="7k2m3n4p5q6r", name="", outcome=None, tasks=4)])
    '41ab23cd prep (succeeded), array 7k2m3n4p'
    """
    return ", ".join(
        ("array " if it.tasks else "")
        + f"{it.job[:8]} {it.name}".rstrip()
        + (f" ({it.outcome})" if it.outcome else "")
        for it in awaits
    )
