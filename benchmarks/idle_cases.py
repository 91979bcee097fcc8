"""Judge the scripted days at a bench: wrong releases, and missed releases.

``python benchmarks/idle_cases.py``
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict

import checkout  # noqa: F401 (makes what tests use importable)

from benchpool_support.idle_cases import IdleVerdict, cases, judged


def main() -> int:
    """Print a row for each kind of case; return 1 if the target is missed."""
    begun = time.perf_counter()
    verdicts = [judged(case) for case in cases()]
    took_s = time.perf_counter() - begun
    kinds: defaultdict[str, list[IdleVerdict]] = defaultdict(list)
    for one in verdicts:
        kinds[one.case.kind].append(one)
    rows = [(kind, *_counts(found)) for kind, found in kinds.items()]
    print("| days | cases | idle | given back wrongly | missed |\n|---|---|---|---|---|")
    for row in (*rows, ("all", *_counts(verdicts))):
        print("| " + " | ".join(map(str, row)) + " |")
    _, idle, wrongly, missed = _counts(verdicts)
    print(f"\n{took_s:.2f} s")
    return int(wrongly > 0 or missed > 0.02 * idle)


def _counts(found: list[IdleVerdict]) -> tuple[int, int, int, int]:
    idle = sum(one.case.due is not None for one in found)
    wrongly, missed = sum(one.is_false for one in found), sum(one.is_missed for one in found)
    return len(found), idle, wrongly, missed


if __name__ == "__main__":
    sys.exit(main())
