"""Writes the modules sent with a notebook to disk, so that the job's Pythons import them."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchpool.runner import frozen_imports


def sources_of(sent: Mapping[str, Any]) -> dict[str, str]:
    """Return the valid sources by path from the metadata of a notebook.

    >>> sources_of({"modules": {"/a/b.py": "x = 1", "b.py": "", "/c.py": 3}})
    {'/a/b.py': 'x = 1'}
    """
    found = sent.get("modules")
    if not isinstance(found, dict):
        return {}
    return {
        path: text
        for path, text in found.items()
        if isinstance(text, str) and os.path.isabs(path) and path.endswith(".py")
    }


@contextlib.contextmanager
def frozen(sources: Mapping[str, str]) -> Iterator[None]:
    """Let every Python started in this context import these modules as they were sent."""
    if not sources:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="benchpool-modules-") as folder:
        names = {path: f"{number}.py" for number, path in enumerate(sources)}
        for path, name in names.items():
            Path(folder, name).write_text(sources[path], "utf-8")
        Path(folder, frozen_imports.LIST).write_text(json.dumps(names), "utf-8")
        hook = Path(frozen_imports.__file__).read_text("utf-8")
        Path(folder, "sitecustomize.py").write_text(hook, "utf-8")
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, before]))
        try:
            yield
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before
