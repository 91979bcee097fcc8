"""Input forms of operations: on a page, in JupyterLab's panel, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import NODEFAULT, Struct, inspect

from benchpool_scheduler.contract import durations, field_types


@dataclass(frozen=True, slots=True)
class Form:
    """Operation on a job that a page offers as a button.

    Attributes:
        label: Text of the button.
        done: Message after success, with ``{name}`` and other keys of the job. Empty where each
            state has a message of its own.
        ended: Whether it is offered for ended jobs, too.
    """

    label: str
    done: str = ""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class PlainVerb:
    """Verb of the command line that sends one request and prints the answer.

    Its arguments are the parts of the operation's path, then the fields in ``positional``. The
    other fields of query and body are options.

    Attributes:
        words: Words of the command; ``("config", "check")`` is a verb of a group.
        summary: One sentence.
        details: Further sentences.
        many: It takes several jobs and applies to each.
        hidden: Fields that it does not offer.
        reads: Operation that is called instead when no values are given.
        replaces: Words of its former name, which works until the next release.
    """

    words: tuple[str, ...]
    summary: str
    details: str = ""
    many: bool = False
    positional: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    reads: Any = None
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """Field of a query or a body, as input.

    Attributes:
        kind: ``duration`` is a number of seconds that users write as ``90m``.
        title: One or two words.
        help: One sentence.
        least, most: Bounds of a number.
        longest: Maximum length of a text, in characters.
        choices: Allowed values, for ``kind`` ``choice``.
        empty: Word for an empty list, for ``kind`` ``names``.
    """

    name: str
    kind: Literal["text", "whole", "number", "flag", "choice", "names", "duration"]
    title: str
    help: str
    required: bool
    default: Any = None
    least: int | None = None
    most: int | None = None
    longest: int | None = None
    choices: tuple[str, ...] = ()
    empty: str = ""

    @property
    def erasable(self) -> bool:
        """Return whether a form may empty a filled field: a text whose default is empty."""
        return self.kind == "text" and self.default == ""


def fields(struct: type[Struct]) -> tuple[Field, ...]:
    """Return the fields of a closed struct with simple values. Other fields are left out.

    >>> from typing import Annotated
    >>> from msgspec import Meta, defstruct
    >>> Small = defstruct("Small", [("gpus", Annotated[int, Meta(le=8)]), ("name", str)])
    >>> [(one.name, one.kind, one.most) for one in fields(Small)]
    [('gpus', 'whole', 8), ('name', 'text', None)]
    """
    described = inspect.type_info(struct)
    if not isinstance(described, inspect.StructType):
        raise TypeError(f"{struct} is no struct")
    found = (_field(one) for one in described.fields)
    return tuple(one for one in found if one is not None)


def shown(field: Field, value: Any) -> str:
    """Return the value of a field as form text.

    >>> models = Field("models", "names", "Models", "", False, empty="any")
    >>> shown(models, ("H100", "A100")), shown(models, ()), shown(models, None)
    ('H100, A100', 'any', '')
    """
    if value is None:
        return ""
    if field.kind == "names":
        return ", ".join(value) or field.empty
    return durations.written(value) if field.kind == "duration" else str(value)


def filled_in(field: Field, texts: Sequence[str]) -> Any:
    """Return the value of a form field or option from its texts, or None if it is empty.

    A field that takes names accepts several texts.

    Raises:
        InvalidInput: A duration field does not hold a duration.

    >>> models = Field("models", "names", "Models", "", False, empty="any")
    >>> filled_in(models, ["H100, A100"]), filled_in(models, ["any"]), filled_in(models, [])
    (('H100', 'A100'), (), None)
    """
    if field.kind == "duration" and texts and texts[0]:
        return durations.read(texts[0], field.title, field.name, field.least, field.most)
    if field.kind != "names":
        return texts[0] if texts and texts[0] else None
    names = tuple(name.strip() for text in texts for name in text.split(",") if name.strip())
    return None if not names else () if names == (field.empty,) else names


def titled(struct: Struct) -> tuple[tuple[str, str], ...]:
    """Return the nonempty values that have a title, each with the title.

    >>> from typing import Annotated
    >>> from msgspec import Meta, defstruct
    >>> words = Annotated[tuple[str, ...], Meta(title="Words")]
    >>> Small = defstruct("Small", [("words", words, ())])
    >>> titled(Small(("a", "b"))), titled(Small())
    ((('Words', 'a, b'),), ())
    """
    described = inspect.type_info(type(struct))
    fields_ = described.fields if isinstance(described, inspect.StructType) else ()
    pairs = (
        (field_types.plain(one.type)[1].get("title", ""), getattr(struct, one.name))
        for one in fields_
    )
    return tuple((title, _listed(value)) for title, value in pairs if title and value)


def _listed(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} = {each}" for name, each in value.items())
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _field(one: inspect.Field) -> Field | None:
    type_, metadata = field_types.plain(one.type)
    facts: dict[str, Any]
    match type_:
        case inspect.BoolType():
            facts = {"kind": "flag"}
        case inspect.EnumType(cls=cls):
            facts = {"kind": "choice", "choices": tuple(str(each.value) for each in cls)}
        case inspect.IntType(ge=least, le=most):
            kind = "duration" if one.name.endswith("_s") else "whole"
            facts = {"kind": kind, "least": least, "most": most}
        case inspect.FloatType(ge=least, le=most):
            facts = {"kind": "number", "least": least, "most": most}
        case inspect.StrType(max_length=longest):
            facts = {"kind": "text", "longest": longest}
        case inspect.VarTupleType() if "x-empty" in metadata:
            facts = {"kind": "names", "empty": metadata["x-empty"]}
        case _:
            return None
    about = metadata.get("description", "")
    if facts["kind"] == "duration":
        about = f"{about.removesuffix('.')}: {durations.WAYS}."
    title = metadata.get("title") or one.name.replace("_", " ").capitalize()
    return Field(
        name=one.name,
        title=title,
        help=about,
        required=one.required,
        default=None if one.default is NODEFAULT else one.default,
        **facts,
    )
