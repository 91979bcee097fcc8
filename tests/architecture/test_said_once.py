"""What is said in one place: a second module that puts numbers into words fails here."""

from __future__ import annotations

import re

from benchpool_support import checkout

PHRASES = "benchpool_scheduler.phrases"
SECOND_OPINIONS = {
    "a plural": r"""\{'s?' \*|\{'' if \w+ == 1|'GPU' if|"GPU" if""",
    "a duration": r"(?<!_h:.2f)\} (?:min|h|d)\b",
    "a verb for a number": r"""'is' if|"is" if""",
    "a way to say a number": r"def _?(?:duration|count|ordinal|relative|ago|is_are)\(.*-> str:",
}
"""What only the module of phrases may have."""


def test_numbers_and_times_are_put_into_words_in_one_module() -> None:
    found = [
        f"{module.name}:{number}: {what}: {line.strip()}"
        for module in checkout.modules(*checkout.PRODUCT)
        if module.name != PHRASES
        for number, line in enumerate(module.path.read_text("utf-8").splitlines(), start=1)
        for what, pattern in SECOND_OPINIONS.items()
        if re.search(pattern, line)
    ]
    assert found == []
