"""Stores the values that a job's cells have left by name; runs in the job's kernel after them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchpool.values.writing import DocumentWriter

FOLDER = "benchpool-values"
"""Folder of the values in the output folder of a job."""

UNASKED_BYTES = 256 << 20
"""Limit for all values stored by default, without being named, in bytes."""

RESULT = "_"
"""Name of the value of the last expression, as in a session."""

_CODE = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)


def keep(wanted: str, output: str) -> str:
    """Write values of the kernel into the output folder; return the outcome as JSON.

    Args:
        wanted: ``{"names": [...], "asked": bool, "pickle": bool, "returns": bool}`` as JSON. Names
            not asked for are written from the last to the first up to a size limit. So is the
            value of the last expression, unless the job ``returns`` it.
        output: The job's output folder.
    """
    namespace = {**sys.modules["__main__"].__dict__}
    namespace.pop(RESULT, None)
    namespace.update(_result())
    return json.dumps(write(namespace, json.loads(wanted), Path(output)))


def _result() -> dict[str, Any]:
    """Return the last cell's value, by the name of results; empty if it has none."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return {}
    results, last = shell.user_ns.get("Out", {}), shell.execution_count - 1
    return {RESULT: results[last]} if last in results else {}


def write(namespace: Mapping[str, Any], wanted: Mapping[str, Any], output: Path) -> dict[str, Any]:
    """Write values as ``keep`` does, from any namespace; return the outcome without the values."""
    part = output / f".{FOLDER}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        document = _written(namespace, wanted, part)
        target = output / FOLDER
        shutil.rmtree(target, ignore_errors=True)
        if document["names"] or document["left_out"] or wanted["returns"]:
            os.replace(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return {"names": document["names"], "left_out": document["left_out"]}


def _written(
    namespace: Mapping[str, Any], wanted: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    asked = list(wanted["names"]) if wanted["asked"] else []
    unasked = [] if wanted["asked"] else list(wanted["names"])
    (asked if wanted["returns"] else unasked).append(RESULT)
    writer = DocumentWriter(folder, pickle=bool(wanted["pickle"]), states=True)
    for name in asked:
        if name in namespace:
            writer.add(name, namespace[name])
        elif name != RESULT:
            writer.leave_out(name, f"{name} is not defined at the end of the run")
    writer.bound(UNASKED_BYTES)
    for name in reversed(unasked):
        if name in namespace and not isinstance(namespace[name], _CODE):
            writer.add(name, namespace[name], quiet=name == RESULT)
    return writer.finish(returns=bool(wanted["returns"]))
