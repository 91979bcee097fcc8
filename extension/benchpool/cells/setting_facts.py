"""Facts about settings: calls and imports that change how all later code behaves."""

from __future__ import annotations

import fnmatch
import functools
import re

from benchpool.cells.fact_tables import PathPatterns, tables, words

_TABLES = tables()
_SETTINGS = _TABLES["settings"]
_PUTS_BACK: dict[str, str] = _TABLES["puts_back"]
PICTURES = words(_SETTINGS["pictures"])
"""Modules whose settings define the look of figures."""
_SETTING_NAMES = words(_SETTINGS["names"])
_SETTING_BEGINNINGS = tuple(_SETTINGS["beginnings"].split())
_SETTING_PLACES, _SETTING_METHODS = words(_SETTINGS["places"]), words(_SETTINGS["methods"])
_SETTING_PATHS = PathPatterns((each, True) for each in _SETTINGS["paths"].split())
_SETTING_WORDS = words(_SETTINGS["words"])
_CERTAIN_SETTINGS = words(_SETTINGS["certain"])
_ANSWERING = PathPatterns((each, True) for each in _SETTINGS["answering"].split())
_SETTING_IMPORTS = _SETTINGS["imports"].split()
_OUTPUTS = PathPatterns((each, True) for each in _TABLES["unused_results"]["telling"].split())
_COMPUTING = words(_TABLES["unused_results"]["computing"])
_CHANGE_WORDS = words(_TABLES["unused_results"]["changing"])


@functools.lru_cache(maxsize=4096)
def is_setting(chain: tuple[str, ...]) -> bool:
    """Return whether calling ``a.b.c`` of a module changes how all later code behaves.

    >>> is_setting(("np", "seterr")), is_setting(("sys", "path", "append"))
    (True, True)
    >>> is_setting(("np", "mean"))
    False
    """
    name = chain[-1]
    if _SETTING_PATHS.find(".".join(chain)) or name in _SETTING_NAMES:
        return True
    if name.startswith(_SETTING_BEGINNINGS):
        return True
    return len(chain) > 2 and chain[-2] in _SETTING_PLACES and name in _SETTING_METHODS


def puts_back(chain: tuple[str, ...]) -> str | None:
    """Return the library whose settings a context manager restores at its end, or None.

    >>> puts_back(("np", "errstate")), puts_back(("open",)), puts_back(())
    ('numpy', None, None)
    """
    return _PUTS_BACK.get(chain[-1]) if chain else None


def sounds_like_setting(name: str) -> bool:
    """Return whether the name of an unknown function contains a word for a setting."""
    return not _SETTING_WORDS.isdisjoint(_words_of(name))


def surely_sets(name: str) -> bool:
    """Return whether the name of an unknown function shows that it sets something.

    >>> surely_sets("setup_device"), surely_sets("init"), surely_sets("init_weights")
    (True, True, False)
    """
    return _words_of(name)[0] in _CERTAIN_SETTINGS or name in {"init", "initialize"}


def only_answers(name: str) -> bool:
    """Return whether the name of an unknown function shows that it only returns a value."""
    return only_outputs(name) or _ANSWERING.find(name) is not None


def only_outputs(name: str) -> bool:
    """Return whether a function or method of this name shows, writes or waits, and changes nothing.

    >>> only_outputs("print"), only_outputs("plot_history"), only_outputs("pack_into")
    (True, True, False)
    """
    return _OUTPUTS.find(name) is not None


def sounds_like_change(name: str) -> bool:
    """Return whether a name contains a word for a change (``pack_into``, ``add_path``)."""
    return not _CHANGE_WORDS.isdisjoint(_words_of(name))


def only_computes(path: str) -> bool:
    """Return whether a function's module only computes, so that its functions set nothing."""
    return path.partition(".")[0] in _COMPUTING


def import_sets(name: str) -> bool:
    """Return whether importing a name changes something (``enable_halving_search_cv``)."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _SETTING_IMPORTS)


def _words_of(name: str) -> list[str]:
    """Return the words of a name: ``pack_into``, ``setupLogging``."""
    return [each.lower() for each in re.split(r"_|(?<=[a-z])(?=[A-Z])", name)]
