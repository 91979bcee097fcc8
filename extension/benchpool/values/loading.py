"""Loads the values sent by a notebook into the job's kernel, before its cells run."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from benchpool.values.reading import StoredValues


def load(folder: str) -> str:
    """Bind the values of a folder to their names, and remove it; return a description as JSON.

    Pickles are loaded too: this runs as the user who sent them, in that user's job.
    """
    values = StoredValues(Path(folder), pickles=True)
    found = {name: values[name] for name in values}
    sys.modules["__main__"].__dict__.update(found)
    shutil.rmtree(folder, ignore_errors=True)
    return json.dumps({"names": values.entries, "left_out": {}})
