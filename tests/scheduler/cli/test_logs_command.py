"""``benchpool logs``: the bytes of a log on stdout, and reasons for a missing log on stderr."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]


def test_logs_prints_exact_bytes(benchpool: Benchpool) -> None:
    program = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 5000)"
    id_ = benchpool("submit", "--json", "--wait", "--", "python3", "-c", program).json["id"]
    assert benchpool("logs", id_).raw == bytes(range(256)) * 5000


def test_empty_log_is_reported_on_stderr(benchpool: Benchpool) -> None:
    id_ = benchpool("submit", "--json", "--wait", "--", "true").json["id"]
    result = benchpool("logs", id_)
    assert (result.status, result.out) == (0, "")
    assert result.err.strip() == (
        "The log is empty: nothing was written to it, or the job's files no longer exist."
    )


def test_logs_follows_job_to_end(benchpool: Benchpool) -> None:
    id_ = benchpool("submit", "--json", "--", "sh", "-c", "echo a; sleep 1; echo b").json["id"]
    result = benchpool("logs", "-f", id_[:8])
    assert (result.status, result.out) == (0, "a\nb\n")


def test_logs_since_time_skips_earlier_output(benchpool: Benchpool) -> None:
    program = "import time; print('early', flush=True); time.sleep(2.5); print(time.time())"
    id_ = benchpool("submit", "--json", "--wait", "--", "python3", "-c", program).json["id"]
    late = float(benchpool("logs", id_).out.split()[1])
    at = datetime.fromtimestamp(late - 0.5, UTC).isoformat()
    assert benchpool("logs", "--since", at, id_).out.split() == [str(late)]
    assert benchpool("logs", "-f", "--since", at, id_).out.split() == [str(late)]
    assert benchpool("logs", "--since", "1h", id_).out.split()[0] == "early"
    after = datetime.fromtimestamp(late + 1.5, UTC).isoformat()
    quiet = benchpool("logs", "--since", after, id_)
    assert (quiet.out, quiet.err.strip()) == ("", "Nothing was written to the log since then.")
    assert benchpool("logs", "--since", "yesterday", id_).status == 2
