"""Query of the kernel as one expression, and the parsing of the kernel's reply."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterable, Mapping
from typing import Any

from benchpool.kernel.answer import KernelAnswer, decode

MAX_NAMES = 1000
KEY = "benchpool"
"""Name of the expression in the request and in the reply."""


@functools.cache
def probe_text() -> str:
    """Return the source of the probe, which is sent to the kernel."""
    return importlib.resources.files("benchpool.kernel").joinpath("probe.py").read_text("utf-8")


def expression(names: Iterable[str]) -> str:
    """Return the expression that the kernel evaluates; it binds no names of the user.

    The probe runs in a separate namespace, which is discarded after the answer.
    """
    asked = sorted(set(names))[:MAX_NAMES]
    run = f"(lambda own: (exec({probe_text()!r}, own), own['in_kernel'])[1])"
    return f"{run}({{'__name__': 'benchpool.kernel.probe'}})(globals(), {json.dumps(asked)})"


def read(reply: Mapping[str, Any]) -> KernelAnswer:
    """Return the answer in the content of an ``execute_reply``.

    Raises:
        ValueError: The expression failed, or gave no answer.
    """
    result = reply.get("user_expressions", {}).get(KEY)
    if reply.get("status") != "ok" or not isinstance(result, dict):
        raise ValueError(f"the kernel could not answer: {reply.get('ename', 'no reason given')}")
    if result.get("status") != "ok":
        raise ValueError(f"the kernel could not answer: {result.get('ename', 'no reason given')}")
    return decode(str(result["data"]["text/plain"]))


def of_this_process(
    namespace: dict[str, Any], history: list[str], names: Iterable[str]
) -> KernelAnswer:
    """Return the answer of this process (``%%train``), in the same form as over the wire."""
    from benchpool.kernel import probe

    return decode(probe.answer(namespace, history, sorted(set(names))[:MAX_NAMES]))
