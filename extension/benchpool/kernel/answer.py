"""Answer of the kernel as validated data, since it comes from a process of the user."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Word = Annotated[str, Meta(max_length=400)]
MAX_ANSWER = 4 << 20
"""Maximum size of an answer in bytes; texts of the history use at most half of it."""


class NameFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """Facts about the value that a name of the kernel holds.

    Attributes:
        identity: The same number for the same object.
        type: Its class by dotted name, such as ``pandas.core.frame.DataFrame``.
        is_immutable: Neither the object nor anything in it can change in place.
        is_walked: Everything that it reaches was examined: ``shares`` and ``bytes`` are complete.
        bytes: Memory that it reaches, in bytes; a lower bound if ``is_walked`` is false.
        shape: Lengths of its axes, if it is an array, a tensor or a table.
        length: Number of elements, if it is a plain list, dict or the like.
        device: Device of its data, such as ``cuda:0``; None for CPU memory.
        shares: Other names that reach a mutable object which this name reaches too.
    """

    identity: int
    type: Word
    is_immutable: bool
    is_walked: bool
    bytes: int
    shape: list[int] | None
    length: int | None
    device: Word | None
    shares: list[Word]


class KernelAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """Answer of a kernel.

    Attributes:
        names: The queried names that it has.
        history: Texts of the cells that ran in it, oldest first; ``history[i]`` has the number
            ``first + i``. The oldest texts of a long session are left out.
        first: Number of the first text.
        seconds: Time to answer in the kernel, in seconds.
    """

    names: dict[str, NameFacts]
    history: list[str]
    first: int
    seconds: float

    def group_of(self, name: str) -> frozenset[str]:
        """Return the names connected to one by shared references, itself included.

        They can only be copied together, or each gets a separate object.
        """
        found: set[str] = set()
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                facts = self.names.get(each)
                waiting += facts.shares if facts is not None else []
        return frozenset(found)


class NotAsked(Struct, frozen=True):
    """Missing answer, with the reason as a sentence."""

    text: str


def decode(text: str | bytes) -> KernelAnswer:
    """Return a decoded answer.

    Raises:
        ValueError: It is longer than ``MAX_ANSWER``, or not an answer.

    >>> said = decode('{"names": {}, "history": ["x = 1"], "first": 1, "seconds": 0.01}')
    >>> said.history
    ['x = 1']
    """
    if len(text) > MAX_ANSWER:
        raise ValueError(f"the kernel's answer has {len(text)} bytes, at most {MAX_ANSWER}")
    try:
        return msgspec.json.decode(text, type=KernelAnswer)
    except msgspec.DecodeError as bad:
        raise ValueError(f"the kernel's answer cannot be read: {bad}") from bad
