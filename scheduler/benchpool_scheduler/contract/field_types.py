"""Types and descriptions of fields, read in one place for options, forms and documents."""

from __future__ import annotations

from inspect import cleandoc
from typing import Any

from msgspec import inspect


def plain(type_: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """Return a type without null and metadata, and the metadata. Other unions stay.

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


def told_alike(schema: Any) -> Any:
    """Return a JSON schema whose descriptions are the same on every Python version.

    Descriptions are docstrings. Up to Python 3.12 their later lines keep the source indentation.

    >>> told_alike({"description": "One.\\n\\n    Two."})
    {'description': 'One.\\n\\nTwo.'}
    """
    if isinstance(schema, list):
        return [told_alike(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: cleandoc(part)
        if name == "description" and isinstance(part, str)
        else told_alike(part)
        for name, part in schema.items()
    }
