"""Sentences of docstrings, comments, messages, pages and docs, for tests of their language."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

QUOTED = re.compile(
    r"``[^`]*``|`[^`]*`|\"[^\"\n]*\"|^ *>>> .*(?:\n *\S.*)*|^ +[\w.*, ]+:(?= )", re.MULTILINE
)
"""What is no sentence in a docstring: code and quotations, examples, and names of entries."""


class Sentence(NamedTuple):
    """A docstring or a comment, and the line where it begins."""

    line: int
    text: str


def prose(source: str) -> Iterator[Sentence]:
    """Yield docstrings, those of attributes too, and comments of a module, without their code.

    >>> [one.text for one in prose('limit = 3  # calls\\n\"\"\"Most ``calls``.\"\"\"')]
    ['Most .', 'calls']
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield Sentence(node.lineno, QUOTED.sub("", text))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Sentence(token.start[0], QUOTED.sub("", token.string.lstrip("#:! ")))


def messages(source: str) -> Iterator[Sentence]:
    """Yield the texts of a Python module that are not docstrings, without their code.

    >>> [one.text for one in messages('name = "a-b"\\nraise Refused("`x` is no GPU.")')]
    [' is no GPU.']
    """
    tree = ast.parse(source)
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " in text.strip() and id(node) not in alone:
                yield Sentence(node.lineno, QUOTED.sub("", text))


_COMMENT = re.compile(r"(?:^|(?<=\s))#+ ([^\n]*)|\{\{-? ?/\*(.*?)\*/", re.DOTALL | re.MULTILINE)


def of_comments(source: str) -> Iterator[Sentence]:
    """Yield the ``#`` comments of YAML, TOML, make and shell, and comments of chart templates.

    >>> [one.text for one in of_comments("#!sh\\na: 'b#'  # one `x`\\n{{- /* two */}}")]
    ['one ', ' two ']
    """
    for found in _COMMENT.finditer(source):
        text = found[1] or found[2] or ""
        yield Sentence(source.count("\n", 0, found.start()) + 1, QUOTED.sub("", text))


_SCRIPT = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?P<text>'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`)",
    re.DOTALL,
)


def of_script(source: str) -> Iterator[Sentence]:
    """Yield the texts of more than one word in TypeScript or JavaScript.

    >>> [one.text for one in of_script("const a = 'x'; // not `this`\\nsay('two words');")]
    ['two words']
    """
    for found in _SCRIPT.finditer(source):
        text = re.sub(r"\$\{[^}]*\}", "", (found["text"] or "")[1:-1])
        if " " in text.strip():
            yield Sentence(source.count("\n", 0, found.start()) + 1, text)


_MARKUP = re.compile(
    r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<code.*?</code>|<script.*?</script>", re.DOTALL
)
_TAG = re.compile(r"<[^>]*>")
_SHOWN = re.compile(r'(?:aria-label|title|placeholder|data-label|alt)="([^"]*)"')


def of_template(source: str) -> Iterator[Sentence]:
    """Yield the lines of a page template that users read, with its labels.

    >>> [one.text for one in of_template('<b title="Two words">{{ one }} GPU</b>')]
    [' Two words   GPU ']
    """
    text = _MARKUP.sub(lambda found: "\n" * found[0].count("\n"), source)
    for number, line in enumerate(text.splitlines(), 1):
        labels = " ".join(_SHOWN.findall(line))
        yield Sentence(number, f" {labels} {_TAG.sub(' ', line)}")


_FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"<[^>]*>|\]\([^)]*\)|https?://\S+|`[^`\n]*`|<!--.*?-->")


def of_page(source: str) -> Iterator[Sentence]:
    """Yield the lines of a Markdown page, without code and addresses of links.

    >>> [one.text for one in of_page("See [a](told.md) and `told`.\\n```\\ntold\\n```")]
    ['See [a and .']
    """
    text = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), source)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield Sentence(number, _LINK.sub("", line))
