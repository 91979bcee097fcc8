"""Jobs as JSON, made once for all readers of events who are told the same of them.

What a reader is told of a job depends on the reader only by which other jobs it may see: a reason
names them or not. So a rendering remembers what it asked, and serves every reader who has the same
answers. It is good for as long as the facts that it was made of are the same objects.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

Sees = Callable[[str], bool]
"""Tells whether a reader may see a job; of ``EVERYTHING``, whether it is an administrator."""
EVERYTHING = "*"
MOST = 2_000
"""Jobs of which renderings are kept."""


@dataclass(frozen=True, slots=True)
class _Rendering:
    answers: dict[str, bool]
    data: bytes


@dataclass(frozen=True, slots=True)
class _Known:
    facts: tuple[object, ...]
    renderings: list[_Rendering] = field(default_factory=list)


class Renderings:
    """What was told of jobs last.

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
        """Return what a reader is told of a job; made anew when one of the facts is another object.

        Args:
            facts: All that the rendering is made of, besides what the reader may see.
            render: Makes it; it asks ``sees`` of each other job that it would name.
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
