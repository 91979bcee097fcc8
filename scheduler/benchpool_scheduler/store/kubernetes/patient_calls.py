"""Retries of calls to the API server until they succeed, and concurrent calls."""

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
"""Maximum number of concurrent calls: half of what a connection allows (``kube.wire``)."""


class PatientCalls:
    """Retries of calls, with a report while some of them fail.

    Args:
        report: Called with a sentence while a write fails, and with None after recovery.
    """

    def __init__(self, report: Callable[[str | None], None]) -> None:
        self._report = report
        self._troubled = 0

    async def until_done(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Retry until the call succeeds; report failures. Errors: NotLeading, InvalidInput."""
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
                log.warning("decisions cannot be written yet: %s", failed)
                self._report(_sentence(failed))
                await asyncio.sleep(random.uniform(0.1, min(LONGEST_WAIT_S, 0.2 * 2**tries)))  # noqa: S311
            else:
                if tries:
                    self._troubled -= 1
                    if not self._troubled:
                        self._report(None)
                return done


async def for_all(work: Callable[[T], Coroutine[Any, Any, None]], items: Sequence[T]) -> None:
    """Process all items, ``AT_ONCE`` at a time; raise the first failure after all have ended.

    The limit leaves capacity for other calls to the API server.
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
            f"Decisions cannot be written. The API server reports: {failed.text or failed}. Check "
            "the rights of benchpool's account and that its definitions are those of this release."
        )
    return f"Nothing is accepted or started at the moment; running jobs continue: {failed}"
