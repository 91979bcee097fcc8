"""The formats of values that have a library of their own, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchpool.values.arrays import ARRAY_FORMATS
from benchpool.values.frames import FRAME_FORMATS
from benchpool.values.tensors import TENSOR_FORMATS


class Format(NamedTuple):
    """One kind of node.

    Attributes:
        takes: Whether it writes a value; asked with the writer.
        write: The node's content; writes files by the writer. Errors: CannotTravel.
        read: The value of a node; reads files by the reader.
    """

    name: str
    takes: Callable[[Any, Any], bool]
    write: Callable[[Any, Any], dict[str, Any]]
    read: Callable[[dict[str, Any], Any], Any]


FORMATS = tuple(Format(*each) for each in (*ARRAY_FORMATS, *FRAME_FORMATS, *TENSOR_FORMATS))
FORMATS_BY_NAME = {each.name: each for each in FORMATS}
