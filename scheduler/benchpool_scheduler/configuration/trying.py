"""A configuration with some values set, for whoever looks before they save: read from plain data.

What people wrote is taken apart once for each text; then a trial costs what its check does.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from benchpool_scheduler.configuration import loader, nodes
from benchpool_scheduler.configuration.editing import tried
from benchpool_scheduler.configuration.settings import Configuration
from benchpool_scheduler.contract.configuration import Setting


def attempt(
    text: str, settings: Iterable[Setting], source: str = "benchpool.yaml"
) -> Configuration | None:
    """Return what a text says with some values set, without a text of its own.

    None where the text's data do not say all that it says, so that it has to be changed and read.
    Errors: InvalidInput, whose line is not that of the text.

    >>> found = attempt("version: 1", [Setting("build.default", 2)])
    >>> found.build.default if found else None
    2
    """
    return _read(tried(text, settings, source), source) if _is_known(text, source) else None


@lru_cache(maxsize=2)
def _is_known(text: str, source: str) -> bool:
    data = tried(text, (), source)
    return data is not None and _read(data, source) == loader.load(text, source)


def _read(data: object, source: str) -> Configuration:
    return loader.read(nodes.of_data(data, source), "")
