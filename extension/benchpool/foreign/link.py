"""Requests of a kernel to benchpool in the notebook server's Python.

Both sides exchange lines of JSON. The process answers a request with ``result``, ``refused`` or
``failed``. Before that it may ``ask`` about the session.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from benchpool.functions.rejected import InvalidInput

PYTHON = "BENCHPOOL_SERVER_PYTHON"
"""Environment variable with the path of the notebook server's Python."""

PACKAGE = "BENCHPOOL_KERNEL_PACKAGE"
"""Environment variable with the path of the file that kernels import."""

Answer = Callable[[Mapping[str, Any]], Any]


class PoolRefused(Exception):
    """The pool or benchpool rejected the request; the text gives the reason and the remedy."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines shown in a notebook: the sentence alone."""
        return [f"PoolRefused: {self}"]


def call(request: Mapping[str, Any], answer: Answer | None = None) -> Any:
    """Return the result of a request.

    Args:
        answer: Answers questions of the process about the session.

    Raises:
        PoolRefused: The request was rejected.
        RuntimeError: This is no kernel of a notebook server, or the process gave no answer.
    """
    if PYTHON not in os.environ:
        raise RuntimeError("This is a job, and jobs send no jobs. Send it from the notebook.")
    words = [os.environ[PYTHON], "-P", "-m", "benchpool.foreign"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment(os.environ), encoding="utf-8"
    )
    messages = threading.Thread(target=_show, args=(process.stderr,), daemon=True)
    messages.start()
    try:
        result = _exchange(process, request, answer)
        messages.join()  # everything is shown before the result
        return result
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            with suppress(BrokenPipeError):  # what was written to it is not flushed
                if stream is not None:
                    stream.close()


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the server's Python: without the kernel's own package.

    >>> environment({"PYTHONPATH": "/site:/run/benchpool.zip", PACKAGE: "/run/benchpool.zip"})
    {'PYTHONPATH': '/site', 'BENCHPOOL_KERNEL_PACKAGE': '/run/benchpool.zip'}
    """
    places = environ.get("PYTHONPATH", "").split(":")
    kept = ":".join(each for each in places if each and each != environ.get(PACKAGE))
    others = {name: value for name, value in environ.items() if name != "PYTHONPATH"}
    return {"PYTHONPATH": kept, **others} if kept else others


def _exchange(process: Any, request: Mapping[str, Any], answer: Answer | None) -> Any:
    _send(process, request)
    for line in process.stdout:
        message = json.loads(line)
        if "result" in message:
            return message["result"]
        if "refused" in message:
            raise PoolRefused(message["refused"])
        if answer is None:
            break
        try:
            found = answer(message)
        except InvalidInput as wrong:
            raise PoolRefused(str(wrong)) from None
        _send(process, {"answer": found})
    raise RuntimeError(
        f"benchpool in {os.environ[PYTHON]} ended without an answer. Send the cell with the "
        "button, or install benchpool in this kernel's Python."
    )


def _send(process: Any, message: Mapping[str, Any]) -> None:
    with suppress(BrokenPipeError):  # its output shows the reason
        process.stdin.write(json.dumps(message, default=_plain) + "\n")
        process.stdin.flush()


def _plain(value: Any) -> str:
    """Return the text for an option that JSON lacks: the ID of a job, or a time."""
    return str(getattr(value, "id", value))


def _show(lines: Any) -> None:
    for line in lines:
        sys.stderr.write(line)
