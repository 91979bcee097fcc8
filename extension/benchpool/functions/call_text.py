"""Calls as text: the function by its name in the session, its arguments as literals.

An argument that is not plain data is given by name: the job creates it as the session did, from its
cells. Pure, except that it reads the given objects. Works on every Python from 3.9, with its
standard library.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from benchpool.functions.rejected import InvalidInput
from benchpool.functions.remote_function import RemoteFunction

MOST_TEXT = 1 << 20
"""Maximum length of a call, in characters."""

DEEPEST = 50
"""Maximum nesting depth of lists."""

HIDDEN = "_"
"""Prefix of IPython's own names: ``_``, ``_3``, ``_i``."""


@dataclass(frozen=True)
class FunctionCall:
    """Call to be sent.

    Attributes:
        text: The expression.
        imports: Modules to import first, for functions without a name in the session.
        name: Name of the function.
        given: Arguments by parameter, including defaults, without those of ``*args``.
    """

    text: str
    imports: tuple[str, ...]
    name: str
    given: Mapping[str, object]


class CallWriter:
    """Writer of calls for one session.

    Args:
        namespace: The global names of the session.
        running: Text of the running statement or cell, in which lambdas are searched.
    """

    def __init__(self, namespace: Mapping[str, object], running: str) -> None:
        self._namespace = dict(namespace)
        self._running = running
        self._imports: set[str] = set()

    def write(
        self, function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
    ) -> FunctionCall:
        """Return a call as text.

        Raises:
            InvalidInput: The function or an argument cannot be written, or they do not match.
        """
        self._imports = set()
        while isinstance(function, functools.partial):
            if self._named(function) is not None:
                break
            args = [*function.args, *args]
            kwargs = {**function.keywords, **kwargs}
            function = function.func
        given = _bound(function, args, kwargs)
        plain = _unwrapped(function)
        text = f"{self._function(function)}({', '.join(self._arguments(args, kwargs))})"
        if inspect.iscoroutinefunction(plain):
            text = f"await {text}"
        if len(text) > MOST_TEXT:
            raise InvalidInput(
                f"The arguments of {_called(plain)} have {len(text) >> 20} MiB as text, the limit "
                f"is {MOST_TEXT >> 20} MiB. Pass the path of a file instead.",
                field="args",
                numbers={"characters": len(text), "limit": MOST_TEXT},
            )
        return FunctionCall(text, tuple(sorted(self._imports)), _called(plain), given)

    # ------------------------------------------------------------------ the function

    def _function(self, function: Any) -> str:
        named = self._named(function)
        if named is not None:
            return named
        plain = _unwrapped(function)
        owner = getattr(plain, "__self__", None)
        if owner is not None and not inspect.ismodule(owner):
            of = self._named(owner)
            if of is not None:
                return f"{of}.{plain.__name__}"
        if getattr(plain, "__name__", "") == "<lambda>":
            return f"({self._lambda(plain)})"
        found = self._imported(plain)
        if found is None:
            raise InvalidInput(
                f"{_called(plain)} has no name in this session, so a job cannot call it. Assign "
                "it to a name first, for example `train = ...`.",
                field="fn",
            )
        return found

    def _named(self, value: object) -> str | None:
        """Return the session's name for an object, or None."""
        own = getattr(value, "__name__", None)
        if isinstance(own, str) and _same(self._namespace.get(own), value):
            return own
        names = (
            name
            for name, each in self._namespace.items()
            if not name.startswith(HIDDEN) and _same(each, value)
        )
        return min(names, default=None)

    def _imported(self, plain: Any) -> str | None:
        module, name = getattr(plain, "__module__", None), getattr(plain, "__qualname__", None)
        if module == builtins.__name__:
            return str(name)
        if not module or not name or "<" in name:
            return None
        # A method of a class of this session, accessed through the class.
        first, *others = str(name).split(".")
        found = functools.reduce(
            lambda each, word: getattr(each, word, None), others, self._namespace.get(first)
        )
        if _same(found, plain):
            return str(name)
        if module == "__main__":
            return None
        self._imports.add(module)
        return f"{module}.{name}"

    def _lambda(self, function: Any) -> str:
        line = function.__code__.co_firstlineno
        try:
            tree = ast.parse(self._running)
        except SyntaxError:
            tree = ast.Module([], [])
        found = {
            text
            for each in ast.walk(tree)
            if isinstance(each, ast.Lambda) and each.lineno == line
            for text in [ast.unparse(each)]
            if _like(compile(text, "<lambda>", "eval").co_consts[0], function.__code__)
        }
        if len(found) != 1 or function.__code__.co_freevars:
            raise InvalidInput(
                f"The lambda of line {line} cannot be sent as text. Define a function with `def` "
                "instead.",
                field="fn",
            )
        return found.pop()

    # ------------------------------------------------------------------ arguments

    def _arguments(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[str]:
        texts = [self._value(each, f"argument {at}") for at, each in enumerate(args, start=1)]
        plain = {name: each for name, each in kwargs.items() if name.isidentifier()}
        texts += [f"{name}={self._value(each, f'`{name}`')}" for name, each in plain.items()]
        others = {name: each for name, each in kwargs.items() if name not in plain}
        return [*texts, f"**{self._value(others, 'a name')}"] if others else texts

    def _value(self, value: object, which: str, depth: int = 0) -> str:
        """Return an expression for a value; ``which`` names the argument."""
        if value is None or type(value) in (bool, int, str, bytes):
            return repr(value)
        if isinstance(value, float):
            plain = float(value)
            return repr(plain) if math.isfinite(plain) else f'float("{plain}")'
        if depth < DEEPEST and type(value) in (list, tuple, set, dict):
            return self._container(value, which, depth + 1)
        if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
            return self._value(value.item(), which, DEEPEST)  # type: ignore[attr-defined]
        if (named := self._named(value)) is not None:
            return named
        if callable(value) and hasattr(value, "__qualname__"):
            return self._function(value)
        raise InvalidInput(
            f"{which[:1].upper()}{which[1:]} is a {type(value).__qualname__} that has no name in "
            "this session. Assign it to a name in a cell, which is then included, or pass the "
            "path of a file.",
            field="args",
        )

    def _container(self, value: Any, which: str, depth: int) -> str:
        if isinstance(value, dict):
            pairs = [
                f"{self._value(key, which, depth)}: {self._value(each, which, depth)}"
                for key, each in value.items()
            ]
            return f"{{{', '.join(pairs)}}}"
        texts = [self._value(each, which, depth) for each in value]
        if isinstance(value, list):
            return f"[{', '.join(texts)}]"
        if isinstance(value, tuple):
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        return f"{{{', '.join(texts)}}}" if texts else "set()"


def _bound(
    function: Callable[..., Any], args: Sequence[object], kwargs: Mapping[str, object]
) -> dict[str, object]:
    """Return the arguments by parameter.

    Raises:
        InvalidInput: They do not match the function.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # the signature of a built-in function is often unknown
        return dict(kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as wrong:
        raise InvalidInput(f"{_called(_unwrapped(function))}(): {wrong}.", field="args") from wrong
    bound.apply_defaults()
    given: dict[str, object] = {}
    for name, each in signature.parameters.items():
        if each.kind is each.VAR_KEYWORD:
            given |= bound.arguments.get(name, {})
        elif each.kind is not each.VAR_POSITIONAL:
            given[name] = bound.arguments[name]
    return given


def _same(one: object, other: object) -> bool:
    """Return whether both are the same object, or the same function with or without ``@remote``."""
    return one is not None and (one is other or _unwrapped(one) is _unwrapped(other))


def _like(one: CodeType, other: CodeType) -> bool:
    """Return whether two lambdas have equivalent code."""
    kept = [
        [each for each in code.co_consts if not isinstance(each, CodeType)] for code in (one, other)
    ]
    return kept[0] == kept[1] and (one.co_code, one.co_names) == (other.co_code, other.co_names)


def _unwrapped(function: Any) -> Any:
    return function.__wrapped__ if isinstance(function, RemoteFunction) else function


def _called(function: Any) -> str:
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__
