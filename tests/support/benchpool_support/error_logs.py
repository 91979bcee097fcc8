"""A plugin that fails a test on unexpected error logs, because each error needs a fix.

A test declares them with ``@pytest.mark.expected_errors("a pass failed", ...)``: regular
expressions that are searched for in the message. Each must be found, and each error must be
declared. All errors count that any thread or library logs in this process while the test runs. An
error of a task that was never awaited is logged when the task is collected as garbage, which may be
in a later test.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence

import pytest

MARKER = "expected_errors"


class ErrorLogs(logging.Handler):
    """Log handler that keeps the logged errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record unless it is an access log line: a 503 response is not an error."""
        if record.name != "tornado.access":
            self.records.append(record)


def wrong(records: Sequence[logging.LogRecord], expected: Sequence[str]) -> list[str]:
    """Return the unexpected errors, and the expected errors that were not logged.

    >>> record = logging.makeLogRecord({"msg": "a pass failed", "name": "pool"})
    >>> wrong([record], ["pass"])
    []
    >>> wrong([record], ["gate"])
    ['pool: a pass failed', 'expected, and not logged: gate']
    """
    messages = [(record, record.getMessage()) for record in records]
    new = [
        _text(record)
        for record, message in messages
        if not any(re.search(pattern, message) for pattern in expected)
    ]
    missing = [
        f"expected, and not logged: {pattern}"
        for pattern in expected
        if not any(re.search(pattern, message) for _, message in messages)
    ]
    return new + missing


def _text(record: logging.LogRecord) -> str:
    cause = ""
    if record.exc_info:
        cause = "\n" + logging.Formatter().formatException(record.exc_info)
    # Logged when the task is collected as garbage.
    late = " (of this test or an earlier one)" if "was never retrieved" in record.msg else ""
    return f"{record.name}: {record.getMessage()}{late}{cause}"


@pytest.fixture(autouse=True)
def error_logs(request: pytest.FixtureRequest) -> Iterator[ErrorLogs]:
    """Fail the test on errors that it did not declare."""
    marker = request.node.get_closest_marker(MARKER)
    found = ErrorLogs()
    logging.getLogger().addHandler(found)
    try:
        yield found
    finally:
        logging.getLogger().removeHandler(found)
    problems = wrong(found.records, marker.args if marker else ())
    assert not problems, "errors in the log:\n" + "\n".join(problems)
