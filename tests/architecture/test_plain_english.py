"""The language of the sources: words that plain technical English does without."""

from __future__ import annotations

import ast
import re

from benchpool_support import checkout
from benchpool_support.prose import prose

WORDS = {
    r"so (?:many|long|much)\b(?! (?:as|that))": "at most N, after N seconds",
    r"told|tells?\b": "report, show, notify, return",
    r"whoever|nobody|somebody|anybody|everybody": "the user, the client, the job",
    r"(?:those|one|ones|others) (?:who|which)\b": "the name of the thing",
    r"anew": "again",
    r"leans?\b|leaning": "depend on",
    r"wish(?:es|ed)?\b": "request, stop request, access request",
    r"(?:is|are|was|were) said\b|says?\b": "show, report, log",
    r"(?:asks?|asked|asking) back": "reclaim",
    r"(?:gives?|gave|given|giving) (?:back|way)\b": "return, release, be preempted",
    r"in vain": "without success",
    r"hears?\b|heard\b": "receive, learn",
    r"once more": "again",
    r"people": "users",
    r"signs\b(?! of life| requests| cookies| certificates| its)": "characters",
}
"""Patterns of words to avoid, and what to write instead."""

LONGEST_NAME = 70
"""Most characters of a test's name."""

EXCEPTIONS: frozenset[tuple[str, str]] = frozenset()
"""Files and words in them that are right there: at most 20."""

FILES = sorted(
    path
    for folder in (
        *("benchmarks", "docs", "extension/benchpool", "helm", "hub_config", "images"),
        *("integrations", "scheduler", "spawner", "tests"),
    )
    for path in (checkout.ROOT / folder).rglob("*.py")
)


def avoided(source: str) -> list[tuple[int, str, str]]:
    """Return lines, words and what to write instead, of docstrings and comments.

    >>> avoided('"Queue of requests."')
    []
    >>> avoided("# Whoever asks is told.")
    [(1, 'told', 'report, show, notify, return'), (1, 'Whoever', 'the user, the client, the job')]
    """
    return [
        (sentence.line, word, instead)
        for sentence in prose(source)
        for pattern, instead in WORDS.items()
        for word in re.findall(rf"\b(?:{pattern})", sentence.text, re.IGNORECASE)
    ]


def avoided_in_name(name: str) -> list[str]:
    """Return the words of a test's name that hide its subject or that plain English avoids.

    >>> avoided_in_name("test_idle_start_times_out")
    []
    >>> avoided_in_name("test_whoever_waits_is_told")
    ['whoever', 'told']
    """
    words = re.compile(rf"\b(?:{'|'.join(WORDS)}|who\b|which\b)", re.IGNORECASE)
    return [found[0] for found in words.finditer(name.replace("_", " ")) if found[0]]


def test_docstrings_and_comments_use_plain_words() -> None:
    assert [
        f"{checkout.relative(path)}:{line}: {word!r}: write {instead}"
        for path in FILES
        for line, word, instead in avoided(path.read_text("utf-8"))
        if (checkout.relative(path), word.lower()) not in EXCEPTIONS
    ] == []


def test_names_of_tests_use_plain_words() -> None:
    names = {
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }
    assert {name for name in names if len(name) > LONGEST_NAME or avoided_in_name(name)} == set()


def test_exceptions_are_few() -> None:
    assert len(EXCEPTIONS) <= 20
