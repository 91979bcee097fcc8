"""Facts about libraries, read once from ``facts.toml``: tables and queries."""

from __future__ import annotations

import fnmatch
import functools
from dataclasses import dataclass
from typing import Literal

from benchpool.cells.fact_tables import PathPatterns, tables, words

Result = Literal["new", "shares", "keeps", "quietly", "unknown"]
MethodRule = Literal["reading", "views", "own", "keeping", "taking", "alone", "drawing", "unknown"]


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """Effects and result of a library function.

    Attributes:
        changes: Positions and keywords of the arguments that it changes; None if unknown.
        result: ``new`` keeps nothing, ``shares`` may be an argument or share its data, ``keeps``
            holds its arguments and may change them, ``quietly`` holds and never changes them.
        kind: Kind of the result, one of ``facts.toml``'s kinds.
        out: Position of the output array, if the function has one.
        is_known: Whether its module is one that does not change its arguments.
    """

    changes: tuple[int | str, ...] | None
    result: Result
    kind: str | None
    out: int | None
    is_known: bool
    seeds: frozenset[str]
    draws: frozenset[str]
    draws_when_made: frozenset[str]


_TABLES = tables()
_MODULES = words(_TABLES["modules"]["reading"])
_CHANGES = PathPatterns(_TABLES["changes"].items())
_RESULTS = PathPatterns(
    (pattern, result)
    for key, result in (
        ("paths", "shares"),
        ("keeping", "keeps"),
        ("quiet", "quietly"),
        ("quiet_functions", "quietly"),
        ("new", "new"),
    )
    for pattern in _TABLES["shares"][key].split()
)
_QUIET_FUNCTIONS = words(_TABLES["shares"]["quiet_functions"])
_KINDS = PathPatterns(
    (pattern, kind) for kind, text in _TABLES["kinds"].items() for pattern in text.split()
)
_SEEDS, _DRAWS = PathPatterns(_TABLES["seeds"].items()), PathPatterns(_TABLES["draws"].items())
_ITERATED = PathPatterns(_TABLES["draws_when_iterated"].items())
_MADE = PathPatterns(_TABLES["draws_when_made"].items())
_OUT = {
    name: _TABLES["out"][rule]
    for rule, names in _TABLES["out"]["names"].items()
    for name in names.split()
}
_METHOD_OUT = {
    name: int(where) for where, names in _TABLES["out"]["methods"].items() for name in names.split()
}
_ONLY_SHARING = words(_TABLES["shares"]["copying_unless"])
_AXES_READING = _TABLES["methods"]["axes_reading"].split()
_METHODS: dict[str, MethodRule] = {
    name: rule
    for rule in ("alone", "taking", "keeping", "own", "views", "reading")
    for name in _TABLES["methods"][rule].split()
}
TRAINING = words(_TABLES["methods"]["training"])
"""Functions and methods that may take long because they fit a model."""

_REGISTERING = tuple(_TABLES["methods"]["registering"].split())
_WRITES, _READS = (
    PathPatterns((each, True) for each in _TABLES["files"][how].split())
    for how in ("write", "read")
)
_MOVES = PathPatterns((each, True) for each in _TABLES["files"]["moves"].split())
_FOLDERS, _LISTS = (words(_TABLES["files"][how]) for how in ("folder", "list"))
FORMULAS = words(_TABLES["functions_of_formulas"]["names"])
"""Functions and methods, by their last word, whose first argument may be a formula."""
_BUILDING = words(_TABLES["methods"]["building"])
_FIGURE = {what: words(text) for what, text in _TABLES["current_figure"].items()}
_STARRED: dict[str, str] = _TABLES["given_by_star"]
_LINKS, _ENDS, _REMEMBERS = (
    PathPatterns((each, True) for each in _TABLES["listening"][how].split())
    for how in ("links", "ends", "remembers")
)
_LOGGERS, _LOGS = (words(_TABLES["listening"][how]) for how in ("loggers", "tells"))
_ASKS_CACHE = words(_TABLES["listening"]["asks_cache"])
_LATE, _SEEDED, _FINDING, _THROUGH, _KEPT_PARTS = (
    words(_TABLES["methods"][key]) for key in ("late", "seeded", "finding", "through", "kept_parts")
)
_METHOD_CHANGES: dict[str, list[int | str]] = _TABLES["method_changes"]
_DRAWING_IN_PLACE = words(_TABLES["methods"]["drawing_in_place"])
_DRAWING = words(_TABLES["methods"]["drawing"])
CHANGING_METHODS = frozenset(
    name for name, rule in _METHODS.items() if rule in {"keeping", "taking", "own"}
) | {
    "write",
    "writelines",
    "backward",
    "send",
    "__next__",
    "__setitem__",
    "__delitem__",
    "__iadd__",
}
"""Methods that surely change their receiver."""


@functools.lru_cache(maxsize=4096)
def function(path: str) -> FunctionFact:
    """Return the facts about a function or class by its full dotted path.

    >>> function("numpy.add.at").changes, function("numpy.mean").changes
    ((0,), ())
    >>> function("mine.mix").changes is None
    True
    """
    last = path.rpartition(".")[2]
    module = path.partition(".")[0]
    is_known = module in _MODULES
    is_class = last[:1].isupper()
    listed = _CHANGES.find(path)
    in_place = last.endswith("_") and not last.startswith("_")
    if listed is not None:
        changes: tuple[int | str, ...] | None = tuple(listed)
    elif in_place:
        changes = (0,)
    else:
        changes = () if is_known or is_class else None
    result: Result | None = _RESULTS.find(path)
    of_function = result == "quietly" and not is_class and path not in _QUIET_FUNCTIONS
    if result is None or of_function:
        result = "shares" if in_place else "keeps" if is_class else "new" if is_known else "unknown"
    return FunctionFact(
        changes,
        result,
        _KINDS.find(path),
        _OUT.get(last) if is_known else None,
        is_known,
        words(_SEEDS.find(path) or ""),
        words(_DRAWS.find(path) or ""),
        words(_MADE.find(path) or "") if is_class or in_place else frozenset(),
    )


@functools.lru_cache(maxsize=4096)
def draws_when_iterated(path: str) -> frozenset[str]:
    """Return the random generators from which each pass over a call's result draws."""
    return words(_ITERATED.find(path) or "")


def passes_on(path: str) -> bool:
    """Return whether a function's result iterates its arguments later (``tqdm``)."""
    return path.partition(".")[0] in {"tqdm", "itertools"}


def is_known(path: str) -> bool:
    """Return whether a path begins with a library that does not change its arguments."""
    return path.partition(".")[0] in _MODULES


def registers(name: str) -> bool:
    """Return whether a method registers a callback (``register_forward_hook``)."""
    return name.startswith(_REGISTERING)


@functools.lru_cache(maxsize=4096)
def file_use(name: str) -> Literal["writes", "reads", "opens"] | None:
    """Return how a function or method of this name uses the file that it is given.

    >>> file_use("to_csv"), file_use("read_csv"), file_use("open"), file_use("mean")
    ('writes', 'reads', 'opens', None)
    """
    if name == "open":
        return "opens"
    return "writes" if _WRITES.find(name) else "reads" if _READS.find(name) else None


def lists_folder(name: str) -> bool:
    """Return whether a function or method of this name lists the files of a folder."""
    return name in _LISTS


def makes_folder(name: str) -> bool:
    """Return whether a function or method of this name makes a folder (``mkdir``)."""
    return name in _FOLDERS


def builds(name: str) -> bool:
    """Return whether a method that changes its receiver keeps its arguments (``compile``)."""
    return name in _BUILDING


def is_of_files(path: str) -> bool:
    """Return whether a function moves, copies or removes files (``shutil.rmtree``)."""
    return _MOVES.find(path) is not None


def method(name: str) -> MethodRule:
    """Return the rule for a method by its name.

    >>> method("fit"), method("head"), method("reshape"), method("frobnicate")
    ('own', 'reading', 'views', 'unknown')
    """
    return _METHODS.get(name, "unknown")


def method_out(name: str) -> int | None:
    """Return the position of ``out`` among an array method's arguments.

    >>> method_out("cumsum"), method_out("head")
    (2, None)
    """
    return _METHOD_OUT.get(name)


def given_by_star(name: str) -> str | None:
    """Return what a name most likely is that comes from a ``from … import *`` (``nn``)."""
    return _STARRED.get(name)


def on_current_figure(
    path: str, *, asks: bool, names_one: bool
) -> Literal["begins", "reads", "draws"] | None:
    """Return what a function does with matplotlib's current figure, or None.

    Args:
        path: Its full dotted path.
        asks: It has no arguments, and its result is used.
        names_one: It has a positional argument, which may select a figure.

    >>> on_current_figure("matplotlib.pyplot.plot", asks=False, names_one=True)
    'draws'
    >>> on_current_figure("matplotlib.pyplot.xlim", asks=True, names_one=False)
    'reads'
    """
    module, _, last = path.rpartition(".")
    if module not in _FIGURE["modules"] or last in _FIGURE["none"]:
        return None
    if last in _FIGURE["begins"]:
        return "draws" if last == "figure" and names_one else "begins"
    return "reads" if last in _FIGURE["reads"] or (asks and last in _FIGURE["asked"]) else "draws"


def makes_current(path: str) -> bool:
    """Return whether a function returns axes or a figure that becomes the current one."""
    return _KINDS.find(path) == "axes" and path.rpartition(".")[0] in _FIGURE["modules"]


def links(path: str) -> bool:
    """Return whether a function links objects, so that one follows the other."""
    return _LINKS.find(path) is not None


def acts_when_freed(path: str) -> bool:
    """Return whether a function or class acts when an object is freed (``weakref.ref``)."""
    return _ENDS.find(path) is not None


def remembers(path: str) -> bool:
    """Return whether a decorator caches a function's results (``functools.lru_cache``)."""
    return _REMEMBERS.find(path) is not None


def is_logger(path: str) -> bool:
    """Return whether a function returns a logger."""
    return path in _LOGGERS


def logs(name: str) -> bool:
    """Return whether a function or method of this name calls a logger's handlers."""
    return name in _LOGS


def asks_cache(name: str) -> bool:
    """Return whether a method reads the cache of a decorator (``cache_info``)."""
    return name in _ASKS_CACHE


def looks_later(name: str) -> bool:
    """Return whether a method's result reads its receiver lazily (``groupby``)."""
    return name in _LATE


def method_changes(name: str) -> tuple[int | str, ...]:
    """Return the arguments that a method changes while its receiver stays the same.

    >>> method_changes("to_sql")
    (1, 'con')
    """
    return tuple(_METHOD_CHANGES.get(name, ()))


def may_find(name: str) -> bool:
    """Return whether a method may return a part of its receiver (``root.find("b")``).

    This does not apply to receivers that are text or tables.
    """
    return name in _FINDING


def changes_through(name: str) -> bool:
    """Return whether a method changes what its receiver keeps for reading only."""
    return name in _THROUGH


def are_kept_parts(attributes: frozenset[str]) -> bool:
    """Return whether one of the attributes is an object that its owner only reads."""
    return not _KEPT_PARTS.isdisjoint(attributes)


def is_seeded(name: str) -> bool:
    """Return whether an attribute of this name draws random numbers (``env.action_space``)."""
    return name in _SEEDED


def only_shares(name: str) -> bool:
    """Return whether ``copy=False`` makes a function share data without writing to it.

    >>> only_shares("astype"), only_shares("nan_to_num")
    (True, False)
    """
    return name in _ONLY_SHARING


def draws_from_receiver(name: str) -> bool:
    """Return whether a method of a random generator draws from it."""
    return name in _DRAWING


def draws_of_torch(name: str) -> bool:
    """Return whether a method fills a tensor with numbers drawn by torch (``normal_``)."""
    return name in _DRAWING_IN_PLACE


def reads_axes(name: str) -> bool:
    """Return whether a method of a figure or of axes does not change it."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in _AXES_READING)
