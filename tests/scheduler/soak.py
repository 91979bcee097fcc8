"""Run the property tests of the core with new random examples until the time is up.

    python tests/scheduler/soak.py --minutes 10

Every round has its own seed, which is printed before it starts. The first round that fails ends the
soak. To repeat exactly that round, pass its seed with ``--seed``.

    python tests/scheduler/soak.py --pools 100000 [--first 0]

instead checks this number of pools, equally many of every kind: each must settle soon (R20). A pool
that does not settle is printed as a case, with its kind and number. Pools are numbered, so that a
large soak can be run in parts. A pool at which the core fails counts as wrong.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchpool_scheduler.simulation.written import as_case
from benchpool_support.drawn_pools import KINDS, drawn_pool
from benchpool_support.settling import settle

CORE = Path(__file__).parent / "core"
RATES = CORE / "test_exhaustive_victim_search.py"
"""Tests of frequencies, which hold for the committed seeds only."""


def one_round(seed: int) -> int:
    """Run the tests once with this seed; return pytest's exit status."""
    print(f"seed {seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--timeout=3600"]
    command += ["--hypothesis-profile=soak", f"--hypothesis-seed={seed}"]
    return subprocess.run([*command, str(CORE), f"--ignore={RATES}"], check=False).returncode


def look_at_pools(first: int, count: int) -> int:
    """Let pools of every kind settle; return the number of pools that fail."""
    acting, wrong = Counter[int](), 0
    names = sorted(KINDS)
    for number in range(first, first + count):
        kind = names[number % len(names)]
        pool = drawn_pool(number, KINDS[kind])
        try:
            settled = settle(pool)
            acting[settled.acting] += 1
            complaint = settled.complaint
        except AssertionError as error:
            complaint = f"the core failed: {error}"
        if complaint:
            wrong += 1
            print(f"pool {number} of kind {kind}: {complaint}\n{as_case(pool)}", flush=True)
    passes = ", ".join(f"{acting[number]} with {number}" for number in sorted(acting))
    print(f"{count} pools from number {first} on, {wrong} wrong; passes that acted: {passes}")
    return wrong


def main(arguments: list[str]) -> int:
    """Run the soak; return 0 if no round failed."""
    parser = argparse.ArgumentParser(description="property tests with new random examples")
    parser.add_argument("--minutes", type=float, default=10.0, help="no round starts later")
    parser.add_argument("--seed", type=int, help="run one round with this seed")
    parser.add_argument("--pools", type=int, help="look at so many pools instead")
    parser.add_argument("--first", type=int, default=0, help="the number of the first pool")
    options = parser.parse_args(arguments)
    if options.pools is not None:
        return min(1, look_at_pools(options.first, options.pools))
    if options.seed is not None:
        return one_round(options.seed)
    end, rounds = time.monotonic() + 60 * options.minutes, 0
    while time.monotonic() < end:
        seed = random.SystemRandom().randrange(2**32)
        if status := one_round(seed):
            print(f'failed; repeat it with: make soak ARGS="--seed {seed}"')
            return status
        rounds += 1
    print(f"{rounds} rounds, none failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
