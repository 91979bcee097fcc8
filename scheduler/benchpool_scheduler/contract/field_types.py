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
    metadata: dict[str, Any] = {}
    while True:
        if isinstance(type_, inspect.Metadata):
            metadata, type_ = {**(type_.extra_json_schema or {}), **metadata}, type_.type
        elif isinstance(type_, inspect.UnionType):
            others = [one for one in type_.types if not isinstance(one, inspect.NoneType)]
            if len(others) != 1:
                return type_, metadata
            type_ = others[0]
        else:
            return type_, metadata


def clean_descriptions(schema: Any) -> Any:
    """Return a JSON schema whose descriptions are the same on every Python version.

    Descriptions are docstrings. Up to Python 3.12 their later lines keep the source indentation.

    >>> clean_descriptions({"description": "One.\\n\\n    Two."})
    {'description': 'One.\\n\\nTwo.'}
    """
    if isinstance(schema, list):
        return [clean_descriptions(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: cleandoc(part)
        if name == "description" and isinstance(part, str)
        else clean_descriptions(part)
        for name, part in schema.items()
    }
