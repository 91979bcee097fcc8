"""The keywords of ``benchpool.submit`` as a type that checkers and editors read."""

from __future__ import annotations

from benchpool import keywords
from benchpool_scheduler.contract.options import OPTIONS

HEAD = '''"""Options of ``submit`` as keywords; written by docs/generate.py: do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict


class SubmitKeywords(TypedDict, total=False):
    """What ``benchpool.submit`` takes by name, each with its type; its help says what they mean."""

'''


def text() -> str:
    """Return the module ``benchpool.submit_keywords``."""
    return HEAD + "".join(
        f"    {option.name}: {keywords.parameter(option).annotation}\n" for option in OPTIONS
    )
