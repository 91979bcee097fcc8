"""Inspection and writing of values by a notebook's kernel. This process reads none of them."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import benchpool
from benchpool import live_values
from benchpool.live_values import LiveValues
from benchpool.server.kernel_answers import evaluated
from benchpool_scheduler.errors import InvalidInput, Unavailable

WRITE_S = 300.0
"""Timeout for writing, in seconds: 1 GiB takes a second or two, more on a slow disk."""

IDLE_S = 2.0
"""Time to wait for a busy kernel, in seconds."""

LOOK_S = 0.5
"""Time that the dialog waits for a kernel to inspect values, in seconds."""

_KEY = "benchpool"
_BOOT = """
import sys
sys.path.append({place!r})
try:
    from benchpool.values import {module}
finally:
    sys.path.remove({place!r})
said = {module}.{call}
"""
"""Makes benchpool importable in a kernel without it, only during this import."""


async def obstacles(
    manager: Any, kernel_id: str | None, names: Sequence[str], *, pickle: bool
) -> dict[str, str]:
    """Return the reasons why names cannot be sent, as far as a short query shows."""
    if kernel_id is None or kernel_id not in manager:
        return {}
    ask = _expression("obstacles", f"of({list(names)!r}, {pickle!r})")
    try:
        async with asyncio.timeout(LOOK_S):
            reply = await evaluated(manager.get_kernel(kernel_id), _KEY, ask)
        return dict(json.loads(_text_of(reply)))
    except (TimeoutError, ValueError):
        return {}  # values that cannot be sent are reported at submission


async def written(
    manager: Any, kernel_id: str | None, names: Sequence[str], folder: Path, *, pickle: bool
) -> LiveValues:
    """Let a kernel write values into an empty folder and return them.

    Raises:
        InvalidInput: No kernel runs, or a value cannot be sent; the message names it and the
        reason.
        Unavailable: The kernel is busy, or did not answer.
    """
    if kernel_id is None or kernel_id not in manager:
        raise InvalidInput(
            "No kernel runs for this notebook, so values cannot be sent. Untick them.",
            field="send",
        )
    kernel = manager.get_kernel(kernel_id)
    await _until_idle(kernel)
    call = f"write({list(names)!r}, {str(folder)!r}, {pickle!r}, {live_values.MOST_BYTES})"
    try:
        async with asyncio.timeout(WRITE_S):
            reply = await evaluated(kernel, _KEY, _expression("sending", call))
    except TimeoutError:
        raise Unavailable(
            f"The kernel did not write the values within {WRITE_S:.0f} s. Untick some."
        ) from None
    try:
        text = _text_of(reply)
    except ValueError as why:
        raise InvalidInput(
            f"The kernel could not write the values ({why}). Untick them.", field="send"
        ) from None
    return await asyncio.to_thread(live_values.of_folder, folder, text)


def _text_of(reply: Any) -> str:
    """Return the value of the expression.

    Raises:
        ValueError: It has no value; the text gives the reason.
    """
    result = reply.get("user_expressions", {}).get(_KEY, {})
    if result.get("status") != "ok":
        why = ": ".join(filter(None, [result.get("ename"), result.get("evalue")]))
        raise ValueError(why or "it gave no reason")
    return str(ast.literal_eval(result["data"]["text/plain"]))


async def _until_idle(kernel: Any) -> None:
    """Wait for the idle status, which a kernel sends only after its last answer.

    Raises:
        Unavailable: The kernel is still busy after ``IDLE_S`` seconds.
    """
    idle = asyncio.Event()

    def on_change(change: Any) -> None:
        if change["new"] == "idle":
            idle.set()

    kernel.observe(on_change, "execution_state")
    try:
        if getattr(kernel, "execution_state", None) != "idle":
            async with asyncio.timeout(IDLE_S):
                await idle.wait()
    except TimeoutError:
        raise Unavailable(
            "The kernel is busy and cannot write values now. Wait, or untick them."
        ) from None
    finally:
        kernel.unobserve(on_change, "execution_state")


def _expression(module: str, call: str) -> str:
    """Return the expression with which a kernel calls a function of ``benchpool.values``."""
    place = str(Path(benchpool.__file__).parents[1])
    boot = _BOOT.format(place=place, module=module, call=call)
    run = f"(lambda own: (exec({boot!r}, own), own['said'])[1])"
    return f"{run}({{'__name__': 'benchpool.values'}})"
