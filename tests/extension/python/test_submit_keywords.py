"""Keywords of ``benchpool.submit`` as type checkers and editors see them."""

from __future__ import annotations

import inspect
from typing import get_type_hints

import pytest

import benchpool
from benchpool.submit_keywords import SubmitKeywords
from benchpool_scheduler.contract.options import OPTIONS


def test_keywords_match_option_table_and_types() -> None:
    shown = inspect.signature(benchpool.submit).parameters
    written = SubmitKeywords.__annotations__
    assert list(written) == [option.name for option in OPTIONS]
    for name in written:
        assert str(shown[name].annotation) == written[name].__forward_arg__
    assert SubmitKeywords.__required_keys__ == frozenset()
    assert get_type_hints(SubmitKeywords)["gpus"] is int


def checked_by_mypy() -> None:
    """Check the keywords with strict mypy, which reports unused ignores; this is never called."""
    benchpool.submit("train.py", gpus=2, tags=["a"], env={"A": "1"}, key="once")
    benchpool.submit("train.py", gpus="2")  # type: ignore[call-overload]
    benchpool.submit("train.py", gpu=2)  # type: ignore[call-overload]
    benchpool.submit("train.py", after=[benchpool.job("41ab23cd"), "7k2m3n4p"])


def test_unknown_keyword_is_rejected_by_name() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'gpu'"):
        benchpool.submit("train.py", **{"gpu": 2})  # type: ignore[call-overload]
