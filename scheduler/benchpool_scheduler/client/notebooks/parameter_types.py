"""Parameter types: from annotations and defaults, with a check of values. Pure."""

from __future__ import annotations

import ast
import math
import re
from typing import Any, Literal

from benchpool_scheduler.contract.parameters import WrittenValue
from benchpool_scheduler.errors import InvalidInput

ParameterType = Literal["bool", "int", "float", "str", "list", "dict", "any"]

_WORDS: dict[ParameterType, str] = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "list": "a list, as [1, 2]",
    "dict": "a dictionary, as {'a': 1}",
    "any": "plain data",
}
_NAMES: dict[str, ParameterType] = {
    **{"bool": "bool", "int": "int", "float": "float", "str": "str"},
    **{"list": "list", "tuple": "list", "Sequence": "list", "List": "list", "Tuple": "list"},
    **{"dict": "dict", "Dict": "dict", "Mapping": "dict"},
}
_NONE = frozenset({"None", "null", "none"})
_BOOL = {"true": True, "false": False}


def annotated(text: str) -> tuple[ParameterType, bool]:
    """Return the type that an annotation names, and whether None is allowed.

    >>> annotated("Optional[int]"), annotated("float | None"), annotated("list[int]")
    (('int', True), ('float', True), ('list', False))
    """
    plain = re.sub(r"^(\w+\.)?Optional\[(.*)\]$", r"\2|None", text)
    parts = [each.strip() for each in plain.split("|")]
    named = [each for each in parts if each not in _NONE]
    first = re.split(r"[\[(]", named[0])[0].rpartition(".")[2] if len(named) == 1 else ""
    return _NAMES.get(first, "any"), len(named) < len(parts)


def of_value(value: object) -> ParameterType:
    """Return the type of a default, or ``any`` if it is not known, as for None."""
    name = type(value).__name__
    return _NAMES.get(name, "any")


def read(name: str, value: object, type_: ParameterType, *, optional: bool, default: str) -> Any:
    """Return a value converted to its parameter's type. Typed text is parsed by the type.

    Raises:
        InvalidInput: The value is of another type.

    >>> read("lr", WrittenValue("1"), "float", optional=False, default="0.1")
    1.0
    >>> read("deep", WrittenValue("True"), "any", optional=False, default="")
    True
    """
    if optional and (value is None or (isinstance(value, WrittenValue) and value in _NONE)):
        return None
    found = _typed(value, type_) if isinstance(value, WrittenValue) else _plain(value, type_)
    if found is _NO:
        shown = str(value) if isinstance(value, WrittenValue) else repr(value)
        why = f" (its default is {default})" if default else ""
        raise InvalidInput(
            f"The parameter `{name}` must be {_WORDS[type_]}{why}, not {shown[:100]}.",
            field=f"parameters.{name}",
        )
    return found


class _No:
    pass


_NO = _No()


def _typed(text: str, type_: ParameterType) -> Any:
    match type_:
        case "str":
            return str(text)
        case "bool":
            return _BOOL.get(text.strip().lower(), _NO)
        case "any":
            found = _literal(text)
            return str(text) if found is _NO else found
    return _plain(_literal(text), type_)


def _plain(value: object, type_: ParameterType) -> Any:
    match type_:
        case "float" if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        case "int" if isinstance(value, int) and not isinstance(value, bool):
            return value
        case "bool" if isinstance(value, bool):
            return value
        case "str" if isinstance(value, str):
            return value
        case "list" if isinstance(value, list | tuple):
            return list(value)
        case "dict" if isinstance(value, dict):
            return value
        case "any" if _literal(repr(value)) is not _NO:
            return value
    return _NO


def _literal(text: str) -> Any:
    plain = text.strip()
    if plain.lower() in _BOOL:
        return _BOOL[plain.lower()]
    if plain == "null":
        return None
    try:
        return ast.literal_eval(plain)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        pass
    try:
        number = float(plain)  # 1e400, inf and nan
    except ValueError:
        return _NO
    return number


def written(value: object) -> str:
    """Return a value as Python text.

    >>> written([0.1, float("inf")]), written("a'b")
    ('[0.1, float("inf")]', '"a\\'b"')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, list):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{written(k)}: {written(v)}' for k, v in value.items())}}}"
    return repr(value)
