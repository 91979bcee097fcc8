"""``submit`` and ``map`` for functions and files in a kernel without benchpool."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from benchpool.foreign import jobs, link
from benchpool.functions.call_text import FunctionCall
from benchpool.functions.session import CodeSession, current, sender_names
from benchpool.functions.session_calls import (
    parameters_of,
    takes,
    written_call,
    written_calls,
)


def submit(what: Any, /, *args: object, **options: Any) -> Any:
    """Submit a function of this session, a script or a notebook; see ``benchpool.submit``."""
    own = {name for name in ("every", "zone") if not callable(what) or not takes(what, name)}
    times = {name: options.pop(name) for name in options.keys() & own}
    if not callable(what):
        request = {"do": "file", "what": os.fspath(what), "args": [str(each) for each in args]}
        return _sent({**request, **times, "interpreter": sys.executable}, options)
    names = set(link.call({"do": "options"}))
    given = {name: each for name, each in options.items() if name not in names}
    asked = {name: options[name] for name in options.keys() & names}
    return submit_call(what, args, given, asked, **times)


def submit_call(
    function: Callable[..., Any], args: Any, kwargs: Any, asked: Any, **times: Any
) -> Any:
    """Submit one call; ``asked`` are the options of the job, by name, ``times`` its schedule."""
    session = current()
    request = _request("call", session, [written_call(session, function, args, kwargs)])
    return _sent({**request, **times}, asked)


def map(
    function: Callable[..., Any], calls: Iterable[Any], *, most: int | None = None, **options: Any
) -> Any:
    """Submit one job for each element of ``calls``; see ``benchpool.map``."""
    session = current()
    return _sent(_request("calls", session, written_calls(session, function, calls, most)), options)


def _request(do: str, session: CodeSession, calls: Sequence[FunctionCall]) -> dict[str, Any]:
    return {
        "do": do,
        "cells": [vars(each) for each in session.cells],
        "folder": str(session.folder),
        "path": session.path,
        "module_folder": session.module_folder,
        "senders": sender_names(session.namespace, (submit, map)),
        "calls": [
            {"text": each.text, "imports": each.imports, "name": each.name}
            | {"given": parameters_of(each)}
            for each in calls
        ],
        "interpreter": sys.executable,
    }


def _sent(request: dict[str, Any], options: dict[str, Any]) -> Any:
    return jobs.shown(link.call({**request, "options": options}))
