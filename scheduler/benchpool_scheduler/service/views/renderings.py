"""Jobs as JSON, rendered once for all readers of events who see the same.

A rendering depends on its reader only by the other jobs that the reader may see: a reason names
them or not. Each rendering therefore stores the answers to these checks, and serves every reader
with the same answers. It is valid while the facts it was built from are the same objects.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

Sees = Callable[[str], bool]
"""Returns whether a reader may see a job; for ``EVERYTHING``, whether it is an administrator."""
EVERYTHING = "*"
MOST = 2_000
"""Maximum number of jobs whose renderings are kept."""


@dataclass(frozen=True, slots=True)
class _Rendering:
    answers: dict[str, bool]
    data: bytes


@dataclass(frozen=True, slots=True)
class _Known:
    facts: tuple[object, ...]
    renderings: list[_Rendering] = field(default_factory=list)


class Renderings:
    """The newest renderings of jobs.

    >>> made, known = [], Renderings()
    >>> def render(sees):
    ...     made.append(None)
    ...     return b"waits for b" if sees("b") else b"waits"
    >>> facts = ("queued",)
    >>> [known.of("a", facts, lambda job: True, render) for _ in range(500)][-1]
    b'waits for b'
    >>> known.of("a", facts, lambda job: False, render)
    b'waits'
    >>> len(made)
    2
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: OrderedDict[str, _Known] = OrderedDict()

    def of(
        self, job: str, facts: tuple[object, ...], sees: Sees, render: Callable[[Sees], bytes]
    ) -> bytes:
        """Return a job's JSON for a reader, rendered again if a fact is another object.

        Args:
            facts: All inputs of the rendering, besides the reader's visibility.
            render: Renders it, calling ``sees`` for each other job that it would name.
        """
        known = self._known.get(job)
        if known is None or not _same(known.facts, facts):
            known = self._known[job] = _Known(facts)
            self._known.move_to_end(job)
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        for one in known.renderings:
            if all(sees(other) is answer for other, answer in one.answers.items()):
                return one.data
        answers: dict[str, bool] = {}

        def ask(other: str) -> bool:
            return answers.setdefault(other, sees(other))

        data = render(ask)
        known.renderings.append(_Rendering(answers, data))
        return data


def _same(then: tuple[object, ...], now: tuple[object, ...]) -> bool:
    return len(then) == len(now) and all(map(operator.is_, then, now))
