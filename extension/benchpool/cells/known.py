"""Names that a fresh kernel has. Facts about libraries are in ``facts.toml``."""

from __future__ import annotations

import builtins
import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROVIDED = frozenset(dir(builtins)) | {
    "__name__",
    "__builtins__",
    "__doc__",
    "__annotations__",
    "get_ipython",
    "display",
    "exit",
    "quit",
    "open",
    "In",
    "Out",
    "_ih",
    "_oh",
    "_dh",
    "_",
    "__",
    "___",
}
"""Names that a fresh kernel has."""

_EARLIER_OUTPUT = re.compile(r"^(_{1,3}|_\d+|_i+\d*|Out)$")

READING_FUNCTIONS = _words(
    """print len range enumerate zip sorted reversed min max sum abs all any repr str int float
    bool complex bytes list tuple dict set frozenset type isinstance issubclass hasattr getattr
    id hash callable format iter map filter round display vars dir help divmod pow ord chr hex
    bin slice super ascii tqdm trange pprint"""
)

BUILTIN_TYPES = _words("list dict set bytearray")

COPYING = _words("list tuple dict set frozenset sorted")
"""Built-in functions that return a new container of their arguments."""

PASSING = _words(
    "zip enumerate map filter reversed iter min max next getattr super vars tqdm trange"
)
"""Built-in functions that return the elements or a part of their arguments."""


_HISTORY = frozenset(["In", "Out", "_ih", "_oh", "_dh", "__", "___"])


def is_history(name: str) -> bool:
    """Return whether a name stands for earlier code and its output (``Out``)."""
    return name in _HISTORY or (is_earlier_output(name) and name != "_")


def is_earlier_output(name: str) -> bool:
    """Return whether a name stands for what an earlier cell printed or read (``_``, ``_12``)."""
    return _EARLIER_OUTPUT.match(name) is not None
