"""``benchpool submit`` sends files with any name and reports excluded files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

NAMES = [
    "Screenshot 2026-11-20 at 9.41.07\N{NARROW NO-BREAK SPACE}PM.png",
    "v\N{NO-BREAK SPACE}13.05.05.png",
    "team \N{WOMAN}\N{ZERO WIDTH JOINER}\N{PERSONAL COMPUTER}.txt",
    "back\\slash.txt",
]


def test_files_with_any_name_are_sent_and_exclusions_reported(
    benchpool: Benchpool, folder: Path
) -> None:
    for name in [*NAMES, "tab\tname.txt", os.fsdecode(b"caf\xe9.txt")]:
        (folder / name).write_text("x")
    script = "soft\N{SOFT HYPHEN}hyphen.py"
    (folder / script).write_text("import os\nprint(ascii(sorted(os.listdir('.'))))")
    result = benchpool("submit", "--wait", script)
    assert (result.status, result.out) == (0, f"{sorted([*NAMES, script])!a}\n")
    travel, *left = [line for line in result.err.splitlines() if "left out" in line]
    assert travel.startswith("sent with the job: 5 files (")
    assert travel.endswith(
        "; left out: 1 × a name that is not valid UTF-8, 1 × a name with a control character"
    )
    assert left == [
        "left out: caf\\xe9.txt (a name that is not valid UTF-8)",
        "left out: tab\\tname.txt (a name with a control character)",
    ]
