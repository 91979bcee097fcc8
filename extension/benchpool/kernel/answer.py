"""The kernel's answer as data; closed, since it comes from a process of the user."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

Word = Annotated[str, Meta(max_length=400)]
MAX_ANSWER = 4 << 20
"""Bytes of an answer; the texts of the history are at most half of it."""


class NameFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What one name of the kernel holds now.

    Attributes:
        identity: The same number for the same object.
        type: Its class by dotted name, such as ``pandas.core.frame.DataFrame``.
        is_immutable: It can never be changed in place, nor anything in it.
        is_walked: Everything that it reaches was looked at: ``shares`` and ``bytes`` are whole.
        bytes: Memory that it reaches, in bytes; at least so many where it was not walked.
        shape: Lengths of its axes, where it is an array, a tensor or a table.
        length: Number of elements, where it is a plain list, dict or the like.
        device: Where its data is, such as ``cuda:0``; None in the processor's memory.
        shares: Other names that reach something that can be changed and that this one reaches too.
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
    """What a kernel said.

    Attributes:
        names: The names that were asked about and that it has.
        history: Texts of the cells that ran in it, oldest first; ``history[i]`` had the number
            ``first + i``. A session's oldest are left out where it is long.
        first: The number of the first text.
        seconds: How long answering took in the kernel.
    """

    names: dict[str, NameFacts]
    history: list[str]
    first: int
    seconds: float

    def group_of(self, name: str) -> frozenset[str]:
        """Return the names that hang together with one by shared references, itself included.

        They can be copied together only, or each gets an object of its own.
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
    """No answer, and the sentence that says why."""

    text: str


def decode(text: str | bytes) -> KernelAnswer:
    """Read an answer.

    Raises:
        ValueError: It is longer than ``MAX_ANSWER``, or no answer.

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
