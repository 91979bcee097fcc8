"""Several values typed into the field of one parameter, which make a sweep over it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from benchpool_scheduler.client.notebooks import NotebookParameter, parameter_types
from benchpool_scheduler.contract import swept_values
from benchpool_scheduler.contract.parameters import WrittenValue
from benchpool_scheduler.contract.sweeps import ListedValues, SweptValues, ValueRange
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count

LONGEST = 60
"""Maximum length of shown values, in characters."""


def split(
    typed: Mapping[str, str], parameters: Sequence[NotebookParameter]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the typed texts that hold one value, and those that hold several.

    A text that its parameter accepts as one value is one value, so a list or a text with commas is
    never a sweep.

    Raises:
        InvalidInput: A text is neither; its field is ``parameters.NAME``.
    """
    known = {each.name: each for each in parameters}
    several = {
        name: plain
        for name, text in typed.items()
        if name in known and not _is_value(text, known[name])
        if _is_several(plain := _without_name(text, name), name)
    }
    return {name: text for name, text in typed.items() if name not in several}, several


def check_types(swept: Mapping[str, SweptValues], parameters: Sequence[NotebookParameter]) -> None:
    """Refuse values that are not of their parameter's type. Errors: InvalidInput."""
    for each in parameters:
        of = swept.get(each.name)
        if of is None or each.type in {"str", "any"}:  # the values of a text may look like numbers
            continue
        if isinstance(of, ListedValues):
            for value in of.values:
                _read(value, each, each.name)
        elif each.type == "int" and not of.whole:
            raise InvalidInput(
                f"The parameter `{each.name}` must be a whole number, and this range has "
                f"fractions. Write int:{of.low:.0f}:{of.high:.0f}.",
                field=each.name,
            )
        elif each.type not in {"int", "float"}:
            _read(of.low, each, each.name)


def described(of: SweptValues) -> str:
    """Return swept values in words.

    >>> described(swept_values.parse("× 5", "seed"))
    '5 values: 0, 1, 2, 3, 4'
    >>> described(swept_values.parse("3e-5 … 3e-3 log", "lr"))
    'values drawn from log:3e-05:0.003'
    """
    text = swept_values.shown(of)
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    if isinstance(of, ListedValues):
        return f"{count(len(of.values), 'value')}: {text}"
    return f"{of.points} points of {text}" if of.points else f"values drawn from {text}"


def _is_value(text: str, parameter: NotebookParameter) -> bool:
    try:
        _read(WrittenValue(text), parameter, "")
    except InvalidInput:
        return False
    return True


def _read(value: object, parameter: NotebookParameter, field: str) -> None:
    """Check that a value is of its parameter's type. Errors: InvalidInput of the field."""
    try:
        parameter_types.read(
            parameter.name,
            value,
            parameter.type,
            optional=parameter.optional,
            default=parameter.default,
        )
    except InvalidInput as wrong:
        raise InvalidInput(wrong.message, field=field) from None


def _is_several(text: str, name: str) -> bool:
    """Return whether a text is a range or has several values. Errors: InvalidInput."""
    try:
        of = swept_values.parse(text, name)
    except InvalidInput as wrong:
        raise InvalidInput(wrong.message, field=f"parameters.{name}") from None
    return isinstance(of, ValueRange) or len(of.values) > 1


def _without_name(text: str, name: str) -> str:
    """Return a text without the parameter's name before a number of values.

    >>> _without_name("seed × 5", "seed"), _without_name("× 5", "seed")
    ('× 5', '× 5')
    """
    return re.sub(rf"^\s*{re.escape(name)}\s*(?=[×x*]\s*\d)", "", text)
