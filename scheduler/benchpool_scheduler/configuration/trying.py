"""Trial configurations with some values set, to preview a change before it is saved.

The written text is parsed once. Each trial then costs only its check.
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
    """Return the configuration of a text with some values set, without rendering a new text.

    None if the plain data of the text do not give the same configuration; then edit and load the
    text. Errors: InvalidInput; its line number does not refer to the text.

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
