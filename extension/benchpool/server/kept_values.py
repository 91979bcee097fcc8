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
_HOW = {"state": "its state", "pickle": "pickled"}


class _Entry(Struct, frozen=True):
    type: Annotated[str, Meta(max_length=1000)]
    form: Annotated[str, Meta(max_length=20)]
    bytes: int


class _Contents(Struct, frozen=True):
    names: dict[str, _Entry]
    left_out: dict[str, str]


def listed(results: Path, job: str) -> tuple[list[KeptValue], list[str]]:
    """Return the stored values, and why others are missing. Foreign files are ignored."""
    try:
        found = _read(results / FOLDER / CONTENTS)
    except (OSError, msgspec.DecodeError):
        return [], []
    names = [(name, each) for name, each in found.names.items() if name.isidentifier()]
    values = [
        KeptValue(name, words_of(each.type, each.form, each.bytes), lines_of(name, each.form, job))
        for name, each in names
        if name != RESULT
    ]
    return values, list(found.left_out.values())


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


def lines_of(name: str, form: str, job: str) -> str:
    """Return the code that loads a value into a notebook, a state into the existing model.

    >>> lines_of("losses", "value", "3fk2")
    'import benchpool\\n\\nlosses = benchpool.job("3fk2")["losses"]'
    >>> lines_of("net", "state", "3fk2").splitlines()[-1]
    'net.load_state_dict(benchpool.job("3fk2")["net"])'
    """
    value = f'benchpool.job("{job}")["{name}"]'
    read = f"{name}.load_state_dict({value})" if form == "state" else f"{name} = {value}"
    return f"import benchpool\n\n{read}"
