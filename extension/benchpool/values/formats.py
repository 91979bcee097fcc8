"""Formats of values that belong to a library, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from benchpool.values.arrays import ARRAY_FORMATS
from benchpool.values.frames import FRAME_FORMATS
from benchpool.values.tensors import TENSOR_FORMATS


class Format(NamedTuple):
    """Format of one kind of node.

    Attributes:
        takes: Whether the format can write a value; called with the writer.
        write: Returns the node's content and writes files with the writer. Raises CannotTravel.
        read: Returns the value of a node and reads files with the reader.
    """

    name: str
    takes: Callable[[Any, Any], bool]
    write: Callable[[Any, Any], dict[str, Any]]
    read: Callable[[dict[str, Any], Any], Any]


FORMATS = tuple(Format(*each) for each in (*ARRAY_FORMATS, *FRAME_FORMATS, *TENSOR_FORMATS))
FORMATS_BY_NAME = {each.name: each for each in FORMATS}
