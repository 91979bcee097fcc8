"""The language of the sources: words that plain technical English does without."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from benchpool_support import checkout
from benchpool_support.prose import (
    Sentence,
    messages,
    of_comments,
    of_page,
    of_script,
    of_template,
    prose,
)

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

GENERATED = frozenset({"node_modules", "lib", "labextension", "generated", "vendor"})
"""Folders whose files are not written by hand."""

EXCEPTIONS = frozenset({("docs/reference/cli.md", "people")})
"""Files and words in them that are right there: at most 20."""

Reader = Callable[[str], Iterator[Sentence]]
PYTHON = tuple(
    f"{folder}/**/*.py"
    for folder in (
        *("benchmarks", "docs", "extension/benchpool", "helm", "hub_config", "images"),
        *("integrations", "scheduler", "spawner", "tests"),
    )
)

TEXTS: tuple[tuple[Reader, tuple[str, ...]], ...] = (
    (prose, PYTHON),
    (
        messages,
        tuple(f"{it}/**/*.py" for it in ("extension/benchpool", "scheduler", "spawner", "helm")),
    ),
    (of_script, ("extension/src/**/*.ts*", "scheduler/benchpool_scheduler/web/static/*.js")),
    (of_template, ("scheduler/benchpool_scheduler/web/templates/*.html",)),
    (of_page, ("*.md", "*/README.md", "docs/**/*.md")),
    (
        of_comments,
        (
            *("Makefile", ".ci/run", "images/**/*.sh", "images/**/Dockerfile", "pyproject.toml"),
            *("helm/**/*.yaml", "helm/**/*.tpl", "helm/**/*.Dockerfile", "tests/**/*.yaml"),
            "extension/benchpool/cells/*.toml",
        ),
    ),
)
"""Readers of sentences, and the files that they read."""


def avoided(sentences: Iterable[Sentence]) -> list[tuple[int, str, str]]:
    """Return lines, words and what to write instead.

    >>> avoided(prose('"Queue of requests."'))
    []
    >>> avoided(prose("# Whoever asks is told."))
    [(1, 'told', 'report, show, notify, return'), (1, 'Whoever', 'the user, the client, the job')]
    """
    return [
        (sentence.line, word, instead)
        for sentence in sentences
        for pattern, instead in WORDS.items()
        for word in re.findall(rf"\b(?:{pattern})", sentence.text, re.IGNORECASE)
    ]


def newest(changelog: str) -> str:
    """Return a changelog up to the end of its newest section.

    >>> newest("# Changelog\\n\\n## 2\\n- New.\\n\\n## 1\\n- Old.")
    '# Changelog\\n\\n## 2\\n- New.\\n\\n'
    """
    return "".join(re.split(r"(?m)^(?=## )", changelog)[:2])


def files(glob: str) -> Iterator[Path]:
    """Return the files of the project that a pattern matches, without generated ones."""
    for path in checkout.ROOT.glob(glob):
        if GENERATED.isdisjoint(path.relative_to(checkout.ROOT).parts):
            yield path


def text_of(path: Path) -> str:
    """Return the text of a file; of a changelog, its newest section."""
    text = path.read_text("utf-8")
    return newest(text) if path.name == "CHANGELOG.md" else text


def avoided_in_name(name: str) -> list[str]:
    """Return the words of a test's name that hide its subject or that plain English avoids.

    >>> avoided_in_name("test_idle_start_times_out")
    []
    >>> avoided_in_name("test_whoever_waits_is_told")
    ['whoever', 'told']
    """
    words = re.compile(rf"\b(?:{'|'.join(WORDS)}|who\b|which\b)", re.IGNORECASE)
    return [found[0] for found in words.finditer(name.replace("_", " ")) if found[0]]


@pytest.mark.parametrize(("reader", "globs"), TEXTS, ids=[reader.__name__ for reader, _ in TEXTS])
def test_texts_use_plain_words(reader: Reader, globs: tuple[str, ...]) -> None:
    found = {path for glob in globs for path in files(glob)}
    assert found
    assert [
        f"{checkout.relative(path)}:{line}: {word!r}: write {instead}"
        for path in sorted(found)
        for line, word, instead in avoided(reader(text_of(path)))
        if (checkout.relative(path), word.lower()) not in EXCEPTIONS
    ] == []


def test_names_of_tests_use_plain_words() -> None:
    names = {
        node.name
        for path in files("tests/**/*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }
    assert {name for name in names if len(name) > LONGEST_NAME or avoided_in_name(name)} == set()


def test_exceptions_are_few() -> None:
    assert len(EXCEPTIONS) <= 20
