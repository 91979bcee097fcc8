"""``%%train`` and ``%%serve`` in a kernel without benchpool."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from typing import Any

from benchpool import failed_inputs
from benchpool.foreign import jobs, link
from benchpool.kernel import probe
from benchpool.values import sending

MAGICS = {"train": "Submit a cell to the training pool.", "serve": "Serve a cell at an address."}


def register(ipython: Any) -> None:
    """Register the magics in an IPython session."""
    failed_inputs.watch(ipython)
    for name, does in MAGICS.items():
        for kind, run in (("cell", _cell), ("line", _line)):
            magic = partial(run, ipython, name)
            magic.__doc__ = f"{does} ``%{name} --help`` lists the options."
            ipython.register_magic_function(magic, magic_kind=kind, magic_name=name)


def _cell(ipython: Any, magic: str, line: str, cell: str) -> Any:
    request = {
        "do": magic,
        "line": line,
        "cell": cell,
        "inputs": list(ipython.user_ns.get("In", [])),
        "failed": sorted(failed_inputs.of(ipython)),
        "interpreter": sys.executable,
    }
    try:
        found = link.call(request, partial(answer, ipython.user_ns))
    except link.PoolRefused as refused:
        print(refused, file=sys.stderr)
        return None
    return jobs.shown(found)


def _line(ipython: Any, magic: str, line: str) -> None:
    _cell(ipython, magic, line if "--help" in line.split() else "--help", "")


def answer(namespace: dict[str, Any], asked: Mapping[str, Any]) -> str:
    """Return what the process of the server's Python asks about the session."""
    if asked["ask"] == "names":
        return probe.answer(namespace, asked["history"], asked["names"])
    return sending.write(asked["names"], asked["folder"], asked["pickle"], asked["most"])
