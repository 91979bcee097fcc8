"""Conversion of a msgspec Struct to the structural schema of a custom resource."""

from __future__ import annotations

import inspect
from typing import Any

from msgspec import NODEFAULT, UNSET, Struct
from msgspec import inspect as types

from benchpool_scheduler.resources.declaring import Rule, ruled

Schema = dict[str, Any]

MOST = 1_000_000_000_000
"""Bound of whole numbers without a bound of their own; all of them are exact in JSON."""


def structural(struct: type[Struct]) -> Schema:
    """Return the schema of a Struct, with its rules and descriptions.

    Raises:
        TypeError: A field's type has no structural form, e.g. a union of two Structs.
    """
    found = types.type_info(struct)
    if not isinstance(found, types.StructType):
        raise TypeError(f"{struct} is no Struct")
    return _struct(found)


def description(struct: type[Struct]) -> str:
    """Return the docstring of a Struct as one paragraph."""
    return " ".join(inspect.cleandoc(struct.__doc__ or "").replace("``", "").split())


def _struct(found: types.StructType) -> Schema:
    schema: Schema = {"type": "object", "description": description(found.cls), "properties": {}}
    for field in found.fields:
        inside = _of(field.type)
        default = _default(field, found.cls)
        if default is not UNSET:
            inside["default"] = default
        schema["properties"][field.encode_name] = inside
    required = [field.encode_name for field in found.fields if field.required]
    if required:
        schema["required"] = required
    own: tuple[Rule, ...] = getattr(found.cls, "rules", ())
    return schema | ruled(own) if own else schema


def _default(field: types.Field, struct: type[Struct]) -> Any:
    """Return the default that is written to users' objects, or UNSET for none."""
    if not getattr(struct, "show_defaults", False):
        return UNSET
    value = UNSET if field.default is NODEFAULT else field.default
    return value if isinstance(value, bool | int | float | str) else UNSET


def _of(kind: types.Type) -> Schema:
    schema: Schema = {}
    if isinstance(kind, types.Metadata):
        schema = _of(kind.type)
        extra = dict(kind.extra_json_schema or {})
        if "x-kubernetes-preserve-unknown-fields" in extra:
            schema = {"type": "object"}
        return schema | extra
    match kind:
        case types.StrType():
            schema = {"type": "string", **_bounds(kind, min_length="minLength")}
            schema |= _bounds(kind, max_length="maxLength")
            if kind.pattern is not None:
                schema["pattern"] = kind.pattern.replace("(?!\\n)", "")
        case types.IntType():
            schema = {"type": "integer", "format": "int64", "minimum": -MOST, "maximum": MOST}
            schema |= _bounds(kind, ge="minimum", le="maximum")
        case types.FloatType():
            schema = {"type": "number", **_bounds(kind, ge="minimum", le="maximum")}
        case types.BoolType():
            schema = {"type": "boolean"}
        case types.LiteralType() | types.EnumType():
            schema = {"type": "string", "enum": _words(kind)}
        case types.DateTimeType():
            schema = {"type": "string", "format": "date-time"}
        case types.ListType() | types.VarTupleType():
            schema = {"type": "array", "items": _of(kind.item_type)}
            schema |= _bounds(kind, min_length="minItems", max_length="maxItems")
        case types.DictType():
            schema = {"type": "object", "additionalProperties": _of(kind.value_type)}
            schema |= _bounds(kind, max_length="maxProperties")
        case types.StructType():
            schema = _struct(kind)
        case types.UnionType():
            schema = _union(kind)
        case _:
            raise TypeError(f"{kind} has no structural schema")
    return schema


def _union(kind: types.UnionType) -> Schema:
    others = [one for one in kind.types if not isinstance(one, types.NoneType)]
    if len(others) == 1:
        return _of(others[0])
    if all(isinstance(one, types.IntType | types.StrType | types.FloatType) for one in others):
        return {"x-kubernetes-int-or-string": True}
    raise TypeError(f"{kind} has no structural schema")


def _words(kind: types.LiteralType | types.EnumType) -> list[str]:
    if isinstance(kind, types.EnumType):
        return [str(member.value) for member in kind.cls]
    return sorted(str(value) for value in kind.values)


def _bounds(kind: types.Type, **names: str) -> Schema:
    found = {word: getattr(kind, name) for name, word in names.items()}
    return {word: value for word, value in found.items() if value is not None}
