"""Options that take a time or an age: an invalid value is rejected under the name of its option."""

from __future__ import annotations

import pytest

from .conftest import Benchpool


@pytest.mark.parametrize(
    ("command", "option"),
    [("audit", "since"), ("audit", "until"), ("report", "from"), ("report", "to")],
)
def test_invalid_time_is_rejected_with_its_option(
    benchpool: Benchpool, command: str, option: str
) -> None:
    refused = benchpool(command, f"--{option}", "yesterday", by="root")
    assert refused.status == 2
    assert f"--{option} is yesterday. Give a time such as" in refused.err
