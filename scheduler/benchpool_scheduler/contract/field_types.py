"""What a field takes, without what is said of it: read in one place for options and forms."""

from __future__ import annotations

from typing import Any

from msgspec import inspect


def plain(type_: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """Return a type without null and remarks, and the remarks; a union of several stays one.

    >>> from typing import Annotated
    >>> from msgspec import Meta
    >>> plain(inspect.type_info(Annotated[int, Meta(ge=1, title="GPUs")] | None))
    (IntType(gt=None, ge=1, lt=None, le=None, multiple_of=None), {'title': 'GPUs'})
    """
    said: dict[str, Any] = {}
    while True:
        if isinstance(type_, inspect.Metadata):
            said, type_ = {**(type_.extra_json_schema or {}), **said}, type_.type
        elif isinstance(type_, inspect.UnionType):
            others = [one for one in type_.types if not isinstance(one, inspect.NoneType)]
            if len(others) != 1:
                return type_, said
            type_ = others[0]
        else:
            return type_, said
