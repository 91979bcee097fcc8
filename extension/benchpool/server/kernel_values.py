"""Has a notebook's kernel look at values, or write them into a folder; none is read here."""

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
"""How long writing may take: 1 GiB in a second or two, a slow disk more."""

IDLE_S = 2.0
"""How long a kernel that seems busy is waited for."""

LOOK_S = 0.5
"""How long the dialog waits for a kernel that looks at values."""

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
"""A kernel without benchpool has it for the moment of this import; nothing else is found so."""


async def obstacles(
    manager: Any, kernel_id: str | None, names: Sequence[str], *, pickle: bool
) -> dict[str, str]:
    """Return why names cannot go along, as far as a kernel that is asked briefly tells."""
    if kernel_id is None or kernel_id not in manager:
        return {}
    ask = _expression("obstacles", f"of({list(names)!r}, {pickle!r})")
    try:
        async with asyncio.timeout(LOOK_S):
            said = await evaluated(manager.get_kernel(kernel_id), _KEY, ask)
        return dict(json.loads(_text_of(said)))
    except (TimeoutError, ValueError):
        return {}  # what cannot travel is told when it is sent


async def written(
    manager: Any, kernel_id: str | None, names: Sequence[str], folder: Path, *, pickle: bool
) -> LiveValues:
    """Let a kernel write values into an empty folder.

    Raises:
        InvalidInput: No kernel runs, or something cannot travel, named with why.
        Unavailable: The kernel is busy, or did not answer.
    """
    if kernel_id is None or kernel_id not in manager:
        raise InvalidInput(
            "No kernel runs for this notebook, so no values can go along: untick them.",
            field="send",
        )
    kernel = manager.get_kernel(kernel_id)
    await _until_idle(kernel)
    call = f"write({list(names)!r}, {str(folder)!r}, {pickle!r}, {live_values.MOST_BYTES})"
    try:
        async with asyncio.timeout(WRITE_S):
            said = await evaluated(kernel, _KEY, _expression("sending", call))
    except TimeoutError:
        raise Unavailable(
            f"The kernel did not write the values within {WRITE_S:.0f} s: untick some."
        ) from None
    try:
        text = _text_of(said)
    except ValueError as why:
        raise InvalidInput(
            f"The kernel could not write the values ({why}): untick them.", field="send"
        ) from None
    return await asyncio.to_thread(live_values.of_folder, folder, text)


def _text_of(reply: Any) -> str:
    """Return what the expression gave. Errors: ValueError, with why it gave nothing."""
    said = reply.get("user_expressions", {}).get(_KEY, {})
    if said.get("status") != "ok":
        why = ": ".join(filter(None, [said.get("ename"), said.get("evalue")]))
        raise ValueError(why or "it did not say why")
    return str(ast.literal_eval(said["data"]["text/plain"]))


async def _until_idle(kernel: Any) -> None:
    """Wait a moment: a kernel says that it is idle only after its last answer."""
    idle = asyncio.Event()

    def heard(change: Any) -> None:
        if change["new"] == "idle":
            idle.set()

    kernel.observe(heard, "execution_state")
    try:
        if getattr(kernel, "execution_state", None) != "idle":
            async with asyncio.timeout(IDLE_S):
                await idle.wait()
    except TimeoutError:
        raise Unavailable(
            "The kernel is busy and cannot write values now: wait, or untick them."
        ) from None
    finally:
        kernel.unobserve(heard, "execution_state")


def _expression(module: str, call: str) -> str:
    """Return what a kernel evaluates to call a function of ``benchpool.values``."""
    place = str(Path(benchpool.__file__).parents[1])
    boot = _BOOT.format(place=place, module=module, call=call)
    run = f"(lambda own: (exec({boot!r}, own), own['said'])[1])"
    return f"{run}({{'__name__': 'benchpool.values'}})"
