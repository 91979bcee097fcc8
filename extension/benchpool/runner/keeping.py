"""Stores the named values that the kernel's cells have left, after they have run."""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Mapping
from typing import Any

from benchpool.runner.kernels import Cells, Kernel
from benchpool.values.untravelled import mib

KEEP_S = 1800
"""Timeout for storing values, in seconds."""

_ASK = "__import__('benchpool.values.keeping', fromlist=['keep']).keep({wanted!r}, {output!r})"
_HOW = {"state": ", its state", "pickle": ", pickled"}


class Keeper:
    """Requests from the kernel the values that the notebook's metadata name.

    Args:
        wanted: ``keep`` of the metadata; if it is invalid, no values are stored.
    """

    def __init__(self, wanted: Any, environment: Mapping[str, str]) -> None:
        self._wanted = _checked(wanted)
        self._output = environment.get("BENCHPOOL_OUTPUT_DIR")
        self._is_first = environment.get("NODE_RANK", "0") == "0"

    @property
    def keeps(self) -> bool:
        """Whether values are requested: only the first worker of a gang stores them."""
        return self._wanted is not None and self._output is not None and self._is_first

    async def keep(self, cells: Cells, kernel: Kernel) -> list[str] | None:
        """Store the values and return lines for the log, or None if the kernel ended."""
        ask = _ASK.format(wanted=json.dumps(self._wanted), output=self._output)
        asking = asyncio.ensure_future(
            cells.kc.execute_interactive(
                "", silent=True, store_history=False, user_expressions={"kept": ask}, timeout=KEEP_S
            )
        )
        while not asking.done():
            await asyncio.wait([asking], timeout=1.0)
            if kernel.status() is not None:
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
                return None
        if asking.exception() is not None:
            return [f"values were not kept: no answer within {KEEP_S} s"]
        return lines_of(asking.result()["content"].get("user_expressions", {}).get("kept", {}))


async def load(cells: Cells, folder: str) -> tuple[bool, str]:
    """Load the sent values into the kernel; return whether it succeeded, and a line for the log."""
    ask = f"__import__('benchpool.values.loading', fromlist=['load']).load({folder!r})"
    answer = await cells.kc.execute_interactive(
        "", silent=True, store_history=False, user_expressions={"loaded": ask}, timeout=KEEP_S
    )
    found = answer["content"].get("user_expressions", {}).get("loaded", {})
    if found.get("status") != "ok":
        why = ": ".join(filter(None, [found.get("ename"), found.get("evalue")]))
        return False, f"values from the notebook could not be loaded: {why}"
    names = json.loads(ast.literal_eval(found["data"]["text/plain"]))["names"]
    return True, f"from the notebook: {', '.join(_kept(*each) for each in names.items())}"


def lines_of(answer: Mapping[str, Any]) -> list[str]:
    """Return lines for the log about the kernel's answer.

    >>> text = '{"names": {"net": {"type": "a.Net", "form": "state", "bytes": 0}}, "left_out": {}}'
    >>> lines_of({"status": "ok", "data": {"text/plain": repr(text)}})
    ['kept net (Net, its state)']
    >>> lines_of({"status": "error", "ename": "OSError", "evalue": "disk full"})
    ['values were not kept: OSError: disk full']
    """
    if answer.get("status") != "ok":
        reason = ": ".join(filter(None, [answer.get("ename"), answer.get("evalue")]))
        return [f"values were not kept: {reason or 'the kernel gave no reason'}"]
    found = json.loads(ast.literal_eval(answer["data"]["text/plain"]))
    kept = [_kept(name, each) for name, each in found["names"].items() if name != "_"]
    lines = [f"kept {', '.join(kept)}"] if kept else []
    return [*lines, *(f"not kept: {why}" for why in found["left_out"].values())]


def _kept(name: str, entry: Mapping[str, Any]) -> str:
    kind = str(entry["type"]).rpartition(".")[2]
    size = f", {mib(entry['bytes'])}" if entry["bytes"] >= 1 << 20 else ""
    return f"{name} ({kind}{_HOW.get(entry['form'], '')}{size})"


def _checked(wanted: Any) -> dict[str, Any] | None:
    if not isinstance(wanted, dict) or not isinstance(wanted.get("names"), list):
        return None
    names = [name for name in wanted["names"] if isinstance(name, str) and name.isidentifier()]
    asked, pickle = wanted.get("asked") is True, wanted.get("pickle") is True
    returns = wanted.get("returns") is True
    return {"names": names, "asked": asked, "pickle": pickle, "returns": returns}
