"""The keywords of ``benchpool.submit`` as a type for type checkers and editors."""

from __future__ import annotations

from benchpool import keywords
from benchpool_scheduler.contract.options import OPTIONS

HEAD = '''"""Options of ``submit`` as keywords; written by docs/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypedDict


class HasId(Protocol):
    """A job that was sent, as ``benchpool.submit`` returns it."""

    @property
    def id(self) -> str: ...


class SubmitKeywords(TypedDict, total=False):
    """Keyword options of ``benchpool.submit`` with their types; its help has the meanings."""

'''


def text() -> str:
    """Return the module ``benchpool.submit_keywords``."""
    return HEAD + "".join(
        f"    {option.name}: {keywords.parameter(option).annotation}\n" for option in OPTIONS
    )
