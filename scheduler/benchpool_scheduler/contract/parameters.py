"""Parameters of a job: the values given to its notebook, cells or function, by name."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

ParameterName = Annotated[str, Meta(pattern=r"^[^\W\d]\w*$(?!\n)", max_length=100)]
ParameterScalar = None | bool | int | float | Annotated[str, Meta(max_length=4096)]
ParameterValue = ParameterScalar | Annotated[list[ParameterScalar], Meta(max_length=256)]
Parameters = Annotated[dict[ParameterName, ParameterValue], Meta(max_length=256)]


class WrittenValue(str):
    """Value as it was typed; the notebook determines its type."""

    __slots__ = ()
