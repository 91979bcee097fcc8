"""Options of ``submit`` as Python keyword arguments, with their signature and help text."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchpool_scheduler.contract.options import OPTIONS, SubmitOption, value_of

MAPPINGS = {"env": "str", "parameters": "object"}
"""Options that take a mapping in Python, with the type of its values."""

NAMES = frozenset(option.name for option in OPTIONS)


def parameter(option: SubmitOption) -> inspect.Parameter:
    """Return the keyword parameter for an option.

    >>> str(parameter(OPTIONS[0]))
    'gpus: int = 1'
    """
    takes = value_of(option)
    word = "int | str" if takes.duration else takes.type.__name__
    word = "datetime | str" if takes.instant else word
    if option.field in MAPPINGS:
        annotation, default = f"Mapping[str, {MAPPINGS[option.field]}] | None", None
    elif option.field == "after":
        annotation, default = "HasId | str | Sequence[HasId | str]", ()
    elif takes.many:
        annotation, default = f"Sequence[{word}]", ()
    else:
        default = takes.default
        annotation = word if default is not None else f"{word} | None"
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_Shown(annotation)
    )


def describe(function: Callable[..., Any]) -> None:
    """Replace ``**options`` in a function's signature by the options, and add them to its help."""
    signature = inspect.signature(function)
    before = [it for it in signature.parameters.values() if it.kind is not it.VAR_KEYWORD]
    function.__dict__["__signature__"] = signature.replace(
        parameters=[*before, *map(parameter, OPTIONS)]
    )
    head, raises, tail = (function.__doc__ or "").partition("\n    Raises:\n")
    function.__doc__ = head.rstrip("\n") + "\n" + "".join(_lines()) + raises + tail


def with_parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options in which every unknown name is a parameter of the notebook.

    >>> with_parameters({"gpus": 2, "lr": 0.1, "parameters": {"seed": 1}})
    {'gpus': 2, 'parameters': {'seed': 1, 'lr': 0.1}}
    """
    own = {name: each for name, each in options.items() if name in NAMES}
    given = {name: each for name, each in options.items() if name not in NAMES}
    return own | ({"parameters": {**(own.get("parameters") or {}), **given}} if given else {})


def _lines() -> Iterator[str]:
    for option in OPTIONS:
        text = option.help
        if option.negates:
            text = f"False: {text[0].lower()}{text[1:]}"
        yield (
            textwrap.fill(
                f"{option.name}: {text}",
                width=100,
                initial_indent=" " * 8,
                subsequent_indent=" " * 12,
            )
            + "\n"
        )


class _Shown(str):
    """Annotation shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
