"""Writes values of a notebook's kernel for a job; runs in that kernel."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchpool.values.writing import DocumentWriter


def write(names: Sequence[str], folder: str, pickle: bool, most: int) -> str:
    """Write values of this session into an empty folder; return the outcome as JSON.

    Args:
        most: Limit for their total size, in bytes.
    """
    namespace = sys.modules["__main__"].__dict__
    before = os.umask(0o077)
    try:
        writer = DocumentWriter(Path(folder), pickle=pickle)
        writer.bound(most)
        for name in names:
            if name in namespace:
                writer.add(name, namespace[name])
            else:
                writer.leave_out(name, f"{name} is not defined in this session")
        document = writer.finish()
    finally:
        os.umask(before)
    return json.dumps({"names": document["names"], "left_out": document["left_out"]})
