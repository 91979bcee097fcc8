"""Calls of a session's functions as text, one or many.

Works on every Python from 3.9, with its standard library.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from benchpool.functions.call_text import CallWriter, FunctionCall
from benchpool.functions.rejected import InvalidInput
from benchpool.functions.session import CodeSession

MOST_JOBS = 100
"""Default maximum of jobs in one ``map``."""

_PLAIN = (bool, int, float, str, list, tuple, type(None))


def written_call(
    session: CodeSession,
    function: Callable[..., Any],
    args: Sequence[object],
    kwargs: Mapping[str, object],
) -> FunctionCall:
    """Return one call as text.

    Raises:
        InvalidInput: The function or an argument cannot be written, or they do not match.
    """
    return _writer(session).write(function, args, kwargs)


def written_calls(
    session: CodeSession,
    function: Callable[..., object],
    calls: Iterable[object],
    most: int | None = None,
) -> list[FunctionCall]:
    """Return a call as text for each element of ``calls``.

    Args:
        most: Maximum number of calls; None stands for ``MOST_JOBS``.

    Raises:
        InvalidInput: There are more, or one cannot be written.
    """
    limit = MOST_JOBS if most is None else most
    elements: list[object] = []
    for each in calls:  # it may be infinite
        if len(elements) == limit:
            raise InvalidInput(
                f"The map has more than {limit} jobs. Pass most=N to raise the limit.",
                field="most",
                numbers={"limit": limit},
            )
        elements.append(each)
    writer = _writer(session)
    return [writer.write(function, *_arguments(each)) for each in elements]


def takes(function: Callable[..., object], name: str) -> bool:
    """Return whether a function has a parameter of this name.

    >>> takes(lambda every: every, "every"), takes(print, "every"), takes(dict, "every")
    (True, False, False)
    """
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):  # a built-in function without a signature
        return False


def parameters_of(call: FunctionCall) -> dict[str, object]:
    """Return the arguments that are plain data; jobs are searched and compared by them."""
    return {name: each for name, each in call.given.items() if isinstance(each, _PLAIN)}


def _arguments(element: object) -> tuple[Sequence[object], Mapping[str, object]]:
    """Return the positional and named arguments that an element of a map stands for."""
    if isinstance(element, Mapping):
        return (), element
    return (element if isinstance(element, tuple) else (element,)), {}


def _writer(session: CodeSession) -> CallWriter:
    return CallWriter(session.namespace, session.cells[-1].source if session.cells else "")
