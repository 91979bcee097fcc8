"""Calls to the API server that are repeated until they succeed, and many of them side by side."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from itertools import chain
from typing import Any, TypeVar

from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.kube import KubeFailure, KubeUnavailable, NotLeading

log = logging.getLogger(__name__)

T = TypeVar("T")
LONGEST_WAIT_S = 5.0
AT_ONCE = 16
"""Calls that are made at the same time: half of what a connection does (``kube.wire``)."""


class PatientCalls:
    """Repeats calls, and reports while some of them cannot be done.

    Args:
        report: Takes a sentence while something cannot be written, None when all is well again.
    """

    def __init__(self, report: Callable[[str | None], None]) -> None:
        self._report = report
        self._troubled = 0

    async def until_done(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Do this until it is done; say so while it cannot be. Errors: NotLeading, InvalidInput."""
        tries = 0
        while True:
            try:
                done = await work()
            except (NotLeading, InvalidInput):
                raise
            except (KubeUnavailable, KubeFailure) as failed:
                tries += 1
                if tries == 1:
                    self._troubled += 1
                log.warning("what was decided cannot be written yet: %s", failed)
                self._report(_sentence(failed))
                await asyncio.sleep(random.uniform(0.1, min(LONGEST_WAIT_S, 0.2 * 2**tries)))  # noqa: S311
            else:
                if tries:
                    self._troubled -= 1
                    if not self._troubled:
                        self._report(None)
                return done


async def for_all(work: Callable[[T], Coroutine[Any, Any, None]], items: Sequence[T]) -> None:
    """Do this for all, ``AT_ONCE`` at a time; the first failure is raised when all have ended.

    Other calls to the API server have room beside it, however many the items are.
    """
    left = iter(items)

    async def one_after_the_other() -> list[BaseException]:
        failures: list[BaseException] = []
        for item in left:
            try:
                await work(item)
            except Exception as failed:
                failures.append(failed)
        return failures

    done = await asyncio.gather(*(one_after_the_other() for _ in items[:AT_ONCE]))
    for failed in chain.from_iterable(done):
        raise failed


def _sentence(failed: Unavailable | KubeFailure) -> str:
    if isinstance(failed, KubeFailure):
        return (
            f"What was decided cannot be written: the API server says {failed.text or failed}; "
            "check the rights of benchpool's account and that its definitions are those of this "
            "release."
        )
    return f"Nothing is accepted or started at the moment, running jobs go on: {failed}"
