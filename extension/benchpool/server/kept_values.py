"""List of the values that a job stored in its results, without reading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from benchpool.server.requests import KeptValue
from benchpool.values.keeping import FOLDER, RESULT
from benchpool.values.untravelled import mib
from benchpool.values.writing import CONTENTS

MOST_BYTES = 1 << 20
RETURNED = "result"
"""Name that the return value of a function gets in a notebook."""

_HOW = {"state": "its state", "pickle": "pickled"}


class _Entry(Struct, frozen=True):
    type: Annotated[str, Meta(max_length=1000)]
    form: Annotated[str, Meta(max_length=20)]
    bytes: int


class _Contents(Struct, frozen=True):
    names: dict[str, _Entry]
    left_out: dict[str, str]
    returns: bool = False


def listed(results: Path, job: str) -> tuple[list[KeptValue], list[str]]:
    """Return the stored values, and why others are missing. Foreign files are ignored."""
    try:
        found = _read(results / FOLDER / CONTENTS)
    except (OSError, msgspec.DecodeError):
        return [], []
    values = [
        _value(name, each, job)
        for name, each in found.names.items()
        if name.isidentifier() and (found.returns or name != RESULT)
    ]
    return values, list(found.left_out.values())


def _value(name: str, entry: _Entry, job: str) -> KeptValue:
    words = words_of(entry.type, entry.form, entry.bytes)
    if name == RESULT:
        return KeptValue(RETURNED, f"return value, {words}", result_line(job))
    return KeptValue(name, words, line_of(name, entry.form, job))


def _read(path: Path) -> _Contents:
    # The job controls the folder: links to files of other users are not followed.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return msgspec.json.decode(file.read(MOST_BYTES), type=_Contents)


def words_of(kind: str, form: str, size: int) -> str:
    """Return a short description of a value.

    >>> words_of("torch.nn.modules.linear.Linear", "state", 3 << 20), words_of("list", "value", 9)
    ('Linear, its state, 3.0 MiB', 'list')
    """
    large = mib(size) if size >= 1 << 20 else ""
    return ", ".join(filter(None, [kind.rpartition(".")[2], _HOW.get(form), large]))


def line_of(name: str, form: str, job: str) -> str:
    """Return the line that loads a value into a notebook, a state into the existing model.

    >>> line_of("losses", "value", "3fk2")
    'losses = benchpool.job("3fk2")["losses"]'
    >>> line_of("net", "state", "3fk2")
    'net.load_state_dict(benchpool.job("3fk2")["net"])'
    """
    value = f'benchpool.job("{job}")["{name}"]'
    return f"{name}.load_state_dict({value})" if form == "state" else f"{name} = {value}"


def result_line(job: str) -> str:
    """Return the line that loads the return value of a function.

    >>> result_line("3fk2")
    'result = benchpool.job("3fk2").result()'
    """
    return f'{RETURNED} = benchpool.job("{job}").result()'
