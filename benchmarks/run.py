"""Run every benchmark here and print its tables: ``make bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

NAMES = (
    "notebook_start.py",
    "click_to_log.py",
    "values_along.py",
    "submissions.py",
    "gate.py",
    "core_shapes.py",
    "admissions.py",
    "responsiveness.py",
)


def main() -> int:
    """Run them one after the other; return the first exit status that is not 0."""
    folder = Path(__file__).resolve().parent
    for name in NAMES:
        status = subprocess.run([sys.executable, str(folder / name)], check=False).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
