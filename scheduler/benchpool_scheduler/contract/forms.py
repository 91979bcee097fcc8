"""How people fill in an operation: on a page, in JupyterLab's panel, in a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from msgspec import NODEFAULT, Struct, inspect

from benchpool_scheduler.contract import field_types


@dataclass(frozen=True, slots=True)
class Form:
    """An operation on a job that a page offers as a button.

    Attributes:
        label: The button's word.
        done: What is said when it was done, with ``{name}`` and other keys of the job; empty where
            words for each state say it.
        ended: It is offered for jobs that have ended, too.
    """

    label: str
    done: str = ""
    ended: bool = False


@dataclass(frozen=True, slots=True)
class PlainVerb:
    """A verb of the command line that asks once and prints the answer.

    Its arguments are the parts of the operation's path, then the fields named in ``positional``;
    the other fields of query and body are options.

    Attributes:
        words: ``("config", "check")`` is a verb of a group.
        summary: One sentence; ``details`` further ones.
        many: It takes several jobs and does the same to each.
        hidden: Fields that it does not offer.
    """

    words: tuple[str, ...]
    summary: str
    details: str = ""
    many: bool = False
    positional: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a query or a body as it is asked for.

    Attributes:
        title: One or two words; ``help`` a sentence.
        least, most: Bounds of a number; ``longest`` that of a text, in characters.
        choices: The values that there are, for ``kind`` ``choice``.
    """

    name: str
    kind: Literal["text", "whole", "number", "flag", "choice"]
    title: str
    help: str
    required: bool
    default: Any = None
    least: int | None = None
    most: int | None = None
    longest: int | None = None
    choices: tuple[str, ...] = ()


def fields(struct: type[Struct]) -> tuple[Field, ...]:
    """Return the fields of a closed struct whose values are simple; others are left out.

    >>> from benchpool_scheduler.contract.actions import JobChange
    >>> [(one.name, one.kind, one.most) for one in fields(JobChange)]
    [('priority', 'whole', 1000), ('workers', 'whole', 4096)]
    """
    described = inspect.type_info(struct)
    if not isinstance(described, inspect.StructType):
        raise TypeError(f"{struct} is no struct")
    found = (_field(one) for one in described.fields)
    return tuple(one for one in found if one is not None)


def titled(struct: Struct) -> tuple[tuple[str, str], ...]:
    """Return the values that people are told under a title of their own, without empty ones.

    >>> from typing import Annotated
    >>> from msgspec import Meta, defstruct
    >>> words = Annotated[tuple[str, ...], Meta(title="Words")]
    >>> Small = defstruct("Small", [("words", words, ())])
    >>> titled(Small(("a", "b"))), titled(Small())
    ((('Words', 'a, b'),), ())
    """
    described = inspect.type_info(type(struct))
    fields_ = described.fields if isinstance(described, inspect.StructType) else ()
    told = (
        (field_types.plain(one.type)[1].get("title", ""), getattr(struct, one.name))
        for one in fields_
    )
    return tuple(
        (title, ", ".join(value) if isinstance(value, tuple) else str(value))
        for title, value in told
        if title and value
    )


def _field(one: inspect.Field) -> Field | None:
    type_, said = field_types.plain(one.type)
    facts: dict[str, Any]
    match type_:
        case inspect.BoolType():
            facts = {"kind": "flag"}
        case inspect.EnumType(cls=cls):
            facts = {"kind": "choice", "choices": tuple(str(each.value) for each in cls)}
        case inspect.IntType(ge=least, le=most):
            facts = {"kind": "whole", "least": least, "most": most}
        case inspect.FloatType(ge=least, le=most):
            facts = {"kind": "number", "least": least, "most": most}
        case inspect.StrType(max_length=longest):
            facts = {"kind": "text", "longest": longest}
        case _:
            return None
    title = said.get("title") or one.name.replace("_", " ").capitalize()
    return Field(
        name=one.name,
        title=title,
        help=said.get("description", ""),
        required=one.required,
        default=None if one.default is NODEFAULT else one.default,
        **facts,
    )
