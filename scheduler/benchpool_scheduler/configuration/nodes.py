"""Values of a YAML document with their positions, so that every error can name its line.

An ``Item`` is one value with its line and key path. Its methods return the value in the required
type or raise ``InvalidInput``.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

import yaml

from benchpool_scheduler.errors import InvalidInput, Number

MOST_BYTES = 1 << 20
MOST_LEVELS = 20
_START = yaml.Mark("", 0, 0, 0, None, 0)


class BoundedLoader(yaml.SafeLoader):
    """Safe YAML loader with at most ``MOST_LEVELS`` levels. A deeper document is a YAML error."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._level = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Return the next value with its content."""
        self._level += 1
        if self._level > MOST_LEVELS + 1:  # the innermost values count as one level
            raise yaml.composer.ComposerError(
                None, None, f"it is nested more than {MOST_LEVELS} levels deep",
                self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )  # fmt: skip
        node = super().compose_node(parent, index)
        self._level -= 1
        return node


@dataclass(frozen=True, slots=True)
class Item:
    """Value with its node, the file's name, and its key path, e.g. ``projects[2].quota``."""

    node: yaml.Node
    source: str
    path: str

    @property
    def line(self) -> int:
        """Return the line in the file, from 1."""
        return int(self.node.start_mark.line) + 1

    def wrong(self, what: str, **numbers: Number) -> NoReturn:
        """Raise InvalidInput about this value; ``what`` is the rest of the sentence."""
        raise InvalidInput(
            f"{self.source}, line {self.line}: {self.path or 'the document'} {what}",
            code="configuration",
            field=self.path or None,
            numbers={"line": self.line, **numbers},
        )

    def entries(self, known: Iterable[str] | None = None) -> Mapping[str, Item]:
        """Return a mapping. With ``known``, any other key is an error with a suggestion."""
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong(f"must be a mapping of keys to values, not {self._kind()}.")
        allowed = None if known is None else tuple(known)
        found: dict[str, Item] = {}
        for key_node, value_node in self.node.value:
            key = Item(key_node, self.source, self.path)
            name = key.name_of_key()
            item = Item(value_node, self.source, f"{self.path}.{name}" if self.path else name)
            if name in found:
                Item(key_node, self.source, item.path).wrong("is given twice; keep one of them.")
            if allowed is not None and name not in allowed:
                Item(key_node, self.source, item.path).wrong(
                    f"is not a known key{nearest(name, allowed)}"
                )
            found[name] = item
        return found

    def name_of_key(self) -> str:
        """Return a key as text."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.wrong("has a key that is not a plain word.")
        return str(self.node.value)

    def items(self) -> Iterator[Item]:
        """Yield the members of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.wrong(f"must be a list, not {self._kind()}.")
        for number, node in enumerate(self.node.value):
            yield Item(node, self.source, f"{self.path}[{number}]")

    def whole(self, least: int = 0, most: int = 1_000_000) -> int:
        """Return a whole number within bounds."""
        value = self.scalar()
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(f"must be a whole number, not {self._kind()}.")
        self._within(value, least, most)
        return value

    def number(self, least: float = 0, most: float = 1e12) -> float:
        """Return a number within bounds."""
        value = self.scalar()
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self.wrong(f"must be a number, not {self._kind()}.")
        self._within(value, least, most)
        return float(value)

    def flag(self) -> bool:
        """Return true or false."""
        value = self.scalar()
        if not isinstance(value, bool):
            self.wrong(f"must be true or false, not {self._kind()}.")
        return value

    def text(self, most: int = 100) -> str:
        """Return a nonempty text as written: ``03423453`` and ``no`` are names."""
        self.scalar()
        value: str = self.node.value
        if not value.strip():
            self.wrong(f"must be a name, not {self._kind()}.")
        if len(value) > most or any(ord(sign) < 32 for sign in value):
            self.wrong(f"must have at most {most} characters, all printable.", limit=most)
        return value

    def is_null(self) -> bool:
        """Return whether the value is null or empty."""
        return self.scalar() is None if isinstance(self.node, yaml.ScalarNode) else False

    def is_word(self, word: str) -> bool:
        """Return whether the value is this word."""
        return isinstance(self.node, yaml.ScalarNode) and self.scalar() == word

    def scalar(self) -> object:
        """Return a plain value: text, number, boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            self.wrong(f"must be a single value, not {self._kind()}.")
        try:
            value: object = yaml.constructor.SafeConstructor().construct_object(self.node)
        except (yaml.YAMLError, ValueError):
            self.wrong("cannot be read; put the value into quotes.")
        return value

    def _within(self, value: float, least: float, most: float) -> None:
        if not least <= value <= most:
            self.wrong(f"is {value:g}; it must be between {least:g} and {most:g}.", value=value)

    def _kind(self) -> str:
        if isinstance(self.node, yaml.ScalarNode):
            return f"{self.node.value!r}" if self.node.value else "empty"
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that suggests the nearest known word, or lists all of them.

    >>> nearest("quotta", ["quota", "limit"])
    '; did you mean `quota`?'
    >>> nearest("x", ["quota", "limit"])
    '; known: limit, quota.'
    """
    words = sorted(known)
    close = difflib.get_close_matches(name, words, n=1)
    if close:
        return f"; did you mean `{close[0]}`?"
    return f"; known: {', '.join(words)}." if words else "; none is known."


def compose(text: str, source: str) -> Item | None:
    """Return the only document of a text, or None if it is empty. Errors: InvalidInput."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise InvalidInput(
            f"{source} is larger than {MOST_BYTES} bytes; it should be a few hundred lines.",
            code="configuration",
            numbers={"limit": MOST_BYTES},
        )
    try:
        node = yaml.compose(text, Loader=BoundedLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = int(mark.line) + 1 if mark else 1
        raise InvalidInput(
            f"{source}, line {line}: this is not YAML: {error.problem or error.context}.",
            code="configuration",
            numbers={"line": line},
        ) from None
    except (yaml.YAMLError, RecursionError):
        raise InvalidInput(
            f"{source} is not YAML: it has characters that are not allowed, or is nested too "
            "deeply.",
            code="configuration",
        ) from None
    return None if node is None else Item(node, source, "")


NAMES = frozenset({"name", "parent", "project", "who"})
"""Keys whose value is a name. In the lists of ``LISTS_OF_NAMES`` each value is a name."""
LISTS_OF_NAMES = frozenset({"members", "leads"})
_TEXT = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"
_LIKE_A_NUMBER = re.compile(r"[-+.]?[0-9][-+.0-9_eE]*")
"""Text that YAML may read as a number. YAML 1.2 does so for ``1e5``, YAML 1.1 does not."""


def with_quoted_names(text: str) -> str:
    """Return the text with quotes around names that YAML would read as another type.

    Keys are included. A text that is not YAML is returned unchanged.

    >>> with_quoted_names("build: {users: {007: 1}}\\nprojects: [{name: a, members: [no, ann]}]")
    'build: {users: {"007": 1}}\\nprojects: [{name: a, members: ["no", ann]}]'
    """
    try:
        node = yaml.compose(text, Loader=BoundedLoader)
    except (yaml.YAMLError, RecursionError):
        return text
    # A value with an alias is one node in several places.
    found = {
        it.start_mark.index: it.end_mark.index for it in _unquoted(node, False) if it.style is None
    }
    for start, end in sorted(found.items(), reverse=True):
        text = f'{text[:start]}"{text[start:end]}"{text[end:]}'
    return text


def _unquoted(node: yaml.Node | None, name: bool) -> Iterator[yaml.ScalarNode]:
    """Yield the names that YAML does not read as text."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _unquoted(key, True)
            named = key.value in NAMES and value.tag != _NULL
            listed = key.value in LISTS_OF_NAMES and isinstance(value, yaml.SequenceNode)
            for each in value.value if listed else [value]:
                yield from _unquoted(each, named or listed)
    elif isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _unquoted(each, False)
    elif name and isinstance(node, yaml.ScalarNode) and node.value:
        odd = node.tag != _TEXT or _LIKE_A_NUMBER.fullmatch(node.value)
        yield from [node] if odd else []


def of_data(data: object, source: str) -> Item:
    """Return plain data as a document. Errors report its first line.

    >>> of_data({"susan": [1, None]}, "here").entries()["susan"].path
    'susan'
    """
    return Item(_node(data), source, "")


def _node(data: object) -> yaml.Node:
    if isinstance(data, Mapping):
        pairs = [(_node(str(key)), _node(value)) for key, value in data.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, _START, _START)
    if isinstance(data, list):
        return yaml.SequenceNode(
            "tag:yaml.org,2002:seq", [_node(it) for it in data], _START, _START
        )
    kind, text = _scalar(data)
    return yaml.ScalarNode(f"tag:yaml.org,2002:{kind}", text, _START, _START)


def _scalar(data: object) -> tuple[str, str]:
    match data:
        case None:
            return "null", "null"
        case bool():
            return "bool", "true" if data else "false"
        case int():
            return "int", str(data)
        case float():
            return "float", repr(data)
    return "str", str(data)
