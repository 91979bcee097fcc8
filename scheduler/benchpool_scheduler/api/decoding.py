"""Decoding of request bodies and query text into contract values, with readable errors.

An error message may be shown in a terminal or a dialog. It names the field, its value, the allowed
values, and for an unknown key the nearest known one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import visible

T = TypeVar("T")

_SHOWN = 60
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_REQUIRED = re.compile(r"Object missing required field `(.*)`", re.DOTALL)
_TYPES = re.compile(r"`([^`]+)`")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")

_WORDS: Mapping[str, str] = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
}


class Malformed(InvalidInput):
    """The request is not valid JSON, or does not match its headers."""

    http_status = 400


def body(data: bytes, type_: type[T]) -> T:
    """Decode a JSON body.

    Raises:
        Malformed: The body is not JSON.
        InvalidInput: The value is not of this type.

    >>> from benchpool_scheduler.contract import LeaseRequest
    >>> body(b'{"gpu": 1}', LeaseRequest)
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.InvalidInput: Unknown key gpu; the nearest one is gpus.
    """
    try:
        return msgspec.json.decode(data, type=type_)
    except msgspec.ValidationError as bad:
        raise _invalid(str(bad), data, type_) from bad
    except (msgspec.DecodeError, UnicodeDecodeError) as bad:
        raise Malformed(f"The body is not JSON ({bad}). Send one JSON object.") from bad
    except RecursionError as bad:
        raise Malformed("The body is nested too deeply. Use at most 20 levels.") from bad


def text(data: bytes) -> str:
    """Decode a text body. Errors: Malformed."""
    try:
        return data.decode()
    except UnicodeDecodeError as bad:
        raise Malformed(f"The body is not UTF-8 text (byte {bad.start}).") from bad


def query(pairs: Mapping[str, Sequence[Any]], type_: type[T]) -> T:
    """Decode the query parameters of an address.

    Raises:
        InvalidInput: A parameter is unknown, given twice, or not of its type.
    """
    for name, values in pairs.items():
        if len(values) > 1:
            raise InvalidInput(f"The parameter {name} is given twice. Give it once.", field=name)
    flat = {name: values[0] for name, values in pairs.items()}
    try:
        return msgspec.convert(flat, type_, strict=False)
    except msgspec.ValidationError as bad:
        raise _invalid(str(bad), msgspec.json.encode(flat), type_) from bad


def plain(data: Any, type_: type[T]) -> T:
    """Convert plain data, such as parsed YAML, to this type.

    Raises:
        InvalidInput: The data is not of this type.
    """
    try:
        return msgspec.convert(data, type_)
    except msgspec.ValidationError as bad:
        raise _invalid(str(bad), msgspec.json.encode(data, enc_hook=str), type_) from bad


def _invalid(text: str, data: bytes, type_: type[Any]) -> InvalidInput:
    match = _PLACE.match(text)
    what, path = (match["what"], match["path"] or "") if match else (text, "")
    if unknown := _UNKNOWN.fullmatch(what):
        return _unknown_key(unknown[1], type_)
    field = path.lstrip(".")
    if required := _REQUIRED.fullmatch(what):
        name = f"{field}.{required[1]}".lstrip(".")
        return InvalidInput(f"{name} is missing.", field=name)
    held = _shown(data, path)
    wanted = _in_words(what)
    subject = f"{field} is {held}" if field else f"The body is {held}"
    return InvalidInput(f"{subject}; it must be {wanted}.", field=field or None)


def _unknown_key(key: str, type_: type[Any]) -> InvalidInput:
    near = difflib.get_close_matches(key, _keys(type_), n=1, cutoff=0.5)
    name = _cut(key)
    hint = f"the nearest one is {near[0]}" if near else "the reference lists all keys"
    return InvalidInput(f"Unknown key {name}; {hint}.", code="unknown-key", field=name)


def _keys(type_: type[Any]) -> list[str]:
    """Return the names of all fields of a type and of its nested types."""
    _, parts = msgspec.json.schema_components([type_])
    return sorted({key for part in parts.values() for key in part.get("properties", ())})


def _shown(data: bytes, path: str) -> str:
    """Return the value at a path of the body, shortened to fit a message."""
    try:
        value: Any = msgspec.json.decode(data)
        for name, index in _STEP.findall(path):
            value = value[name] if name else value[int(index)]
    except (msgspec.DecodeError, LookupError, TypeError, RecursionError):
        return "not usable"
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else _cut(msgspec.json.encode(value).decode())


def _in_words(what: str) -> str:
    wanted = what.removeprefix("Expected ").split(", got ")[0]
    wanted = _TYPES.sub(_type_in_words, wanted)
    return "one of the declared values" if wanted.startswith("Invalid") else wanted


def _type_in_words(match: re.Match[str]) -> str:
    kinds = match[1].split(" | ")
    # A field that may be null may be omitted, so the message does not mention null.
    words = [_WORDS.get(kind, kind) for kind in kinds if kind != "null"]
    return " or ".join(words) or "null"


def _cut(text: str) -> str:
    text = visible(text.encode("utf-8", "replace").decode())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
