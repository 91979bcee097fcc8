"""Named values of a ``TrainingJob``: variables of its environment, and parameters."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from benchpool_scheduler.resources.declaring import Rule, ruled
from benchpool_scheduler.resources.entries import Argument

RULES = (
    Rule(
        "self.all(n, n.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",
        "env has an invalid variable name; use letters, digits and _.",
    ),
    Rule(
        "!self.exists(n, n.startsWith('BENCHPOOL_'))",
        "Variables that begin with BENCHPOOL_ are set by benchpool; name yours differently.",
    ),
)
"""Rules of the field. Unlike rules of the spec, they cost nothing on writes without it."""

Environment = Annotated[
    dict[str, Argument],
    Meta(
        description="Variables of its environment.",
        max_length=1000,
        extra_json_schema=ruled(RULES),
    ),
]
ParameterTexts = Annotated[
    dict[str, Annotated[str, Meta(max_length=65536)]],
    Meta(
        description="Parameters of its notebook or function, as JSON (a record).",
        max_length=256,
    ),
]
