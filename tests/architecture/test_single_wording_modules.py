"""Wording has one place: a second module that formats numbers as words fails here.

The same holds for notices, the sentences to users about their jobs.
"""

from __future__ import annotations

import ast
import re

from benchpool_support import checkout

PHRASES = "benchpool_scheduler.phrases"
SECOND_OPINIONS = {
    "a plural": r"""\{'s?' \*|\{'' if \w+ == 1|'GPU' if|"GPU" if""",
    "a duration": r"(?<!_h:.2f)\} (?:min|h|d)\b",
    "a verb for a number": r"""'is' if|"is" if""",
    "a way to say a number": r"def _?(?:duration|count|ordinal|relative|ago|is_are)\(.*-> str:",
}
"""Patterns that only the package ``phrases`` may contain."""

NOTICES = "benchpool_scheduler.service.lifecycle.notices"
OF_WAITING = "benchpool_scheduler.service.lifecycle.awaiting"
"""Module with the notices of jobs that wait for jobs."""
OF_BENCHES = "benchpool_scheduler.service.benches.line_words"
"""Module with the messages to users who wait for a server."""
TOLD = {"StopIntent", "Note", "Notice", "Reason"}
"""Classes that carry a notice to its reader."""
BELOW = {
    "benchpool_scheduler.store.kubernetes.inbound_jobs": "refuses objects that nobody asked of us",
    "benchpool_scheduler.runtime.local.runtime": "ends workers that the service does not know",
}
"""Modules on the floors below the service, which cannot import its wording."""


def test_numbers_and_times_are_phrased_in_one_package() -> None:
    found = [
        f"{module.name}:{number}: {what}: {line.strip()}"
        for module in checkout.modules(*checkout.PRODUCT)
        if module.name != PHRASES and not module.name.startswith(f"{PHRASES}.")
        for number, line in enumerate(module.path.read_text("utf-8").splitlines(), start=1)
        for what, pattern in SECOND_OPINIONS.items()
        if re.search(pattern, line)
    ]
    assert found == []


def test_notices_are_written_in_one_module() -> None:
    """Other modules pass on notices of these modules or of the core and add no words."""
    found = {
        f"{module.name}:{call.lineno}: {ast.unparse(call)}"
        for module in checkout.modules(*checkout.PRODUCT)
        if module.name not in {NOTICES, OF_WAITING, OF_BENCHES, *BELOW}
        for call in ast.walk(ast.parse(module.path.read_text("utf-8")))
        if isinstance(call, ast.Call) and _called(call) in TOLD
        if any(_has_words(part) for part in [*call.args, *(it.value for it in call.keywords)])
    }
    assert found == set()


def test_stop_notices_come_from_one_module() -> None:
    """No other module of the service creates objects that carry a stop notice."""
    found = {
        module.name
        for module in checkout.modules(*checkout.PRODUCT)
        if module.name.startswith("benchpool_scheduler.service.") and module.name != NOTICES
        for call in ast.walk(ast.parse(module.path.read_text("utf-8")))
        if isinstance(call, ast.Call) and _called(call) in {"StopIntent", "Notice"}
    }
    assert found == set()


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _has_words(part: ast.expr) -> bool:
    """Return whether an argument contains a text of more than one word."""
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip()
        for node in ast.walk(part)
    )
