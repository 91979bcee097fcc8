"""Makes the test packages importable for benchmarks, which run in a checkout. Import it first."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"

sys.path[:0] = [str(TESTS / "cluster"), str(TESTS / "support")]
