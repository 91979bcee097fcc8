"""Words after ``%%train`` and ``%%serve``: parsing, error messages and help."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from benchpool_scheduler.contract.options import SubmitOption


class HelpAsked(Exception):
    """The line has ``--help``. The text lists the options of the magic."""


class MagicParser(argparse.ArgumentParser):
    """Parser of the words after a magic; errors have the form of the pool's errors."""

    def words(self, line: str) -> dict[str, Any]:
        """Return the options of a line by name.

        Raises:
            HelpAsked: The line has ``--help``.
            InvalidInput: The line has an invalid word.
        """
        text = uncommented(line)
        try:
            words = shlex.split(text)
        except ValueError:
            self.error(f"a quotation mark in {text.strip()!r} is not closed")
        if "--help" in words:
            raise HelpAsked(self.help_text())
        return vars(self.parse_args(words))

    def help_text(self) -> str:
        """Return all options with their descriptions."""
        return self.format_help().rstrip()

    def error(self, message: str) -> NoReturn:
        """Reject the words.

        Raises:
            InvalidInput: Always.
        """
        from benchpool_scheduler.errors import InvalidInput

        raise InvalidInput(
            f"{self.prog}: {message}. `{self.prog[1:]} --help` lists the options.",
            field="options",
        )


def uncommented(line: str) -> str:
    """Return a line without the comment at its end.

    >>> uncommented("--gpus 2  # don't wait"), uncommented("--note 'run # 3' --name a#b")
    ('--gpus 2  ', "--note 'run # 3' --name a#b")
    """
    quote, escaped = "", False
    for at, sign in enumerate(line):
        if escaped or (sign == "\\" and quote != "'"):
            escaped = not escaped
        elif quote:
            quote = "" if sign == quote else quote
        elif sign == "#" and line[:at][-1:] in {"", " ", "\t"}:
            return line[:at]
        elif sign in "'\"":
            quote = sign
    return line


def parser_of(magic: str, options: Iterable[SubmitOption]) -> MagicParser:
    """Return the parser for these options of ``submit`` after a magic, and for values to send."""
    from benchpool_scheduler.contract.options import value_of

    parser = MagicParser(prog=f"%%{magic}", add_help=False, allow_abbrev=False)
    for option in options:
        takes = value_of(option)
        if takes.type is bool:
            parser.add_argument(
                option.flag, action="store_true", dest=option.name, help=_plain(option.help)
            )
            continue
        parser.add_argument(
            *filter(None, (option.flag, option.short)),
            dest=option.name,
            type=str if takes.duration else takes.type,
            action="append" if takes.many else "store",
            metavar=option.metavar or None,
            help=_plain(option.help),
        )
    sent = "Name of a value of this session to send instead of the cells that define it."
    parser.add_argument("--send", action="append", metavar="NAME", help=sent)
    pickled = "Pickle values that have no safe format."
    parser.add_argument("--pickle", action="store_true", help=pickled)
    parser.add_argument("--help", action="store_true", help="Show this help and send nothing.")
    return parser


def _plain(text: str) -> str:
    """Return a text that argparse prints unchanged."""
    return text.replace("%", "%%")
