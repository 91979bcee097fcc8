"""Runs the property tests of the core with new random examples until the time is up.

    python tests/scheduler/soak.py --minutes 10

Every round has its own seed, which is printed before it starts. The first round that fails ends
the soak; its seed, given with ``--seed``, repeats exactly that round.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from pathlib import Path

CORE = Path(__file__).parent / "core"
RATES = CORE / "test_exact_answers.py"
"""Asserts how often something happens, for the committed seeds only."""


def one_round(seed: int) -> int:
    """Run the tests once with this seed; return pytest's exit status."""
    print(f"seed {seed}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", "--timeout=3600"]
    command += ["--hypothesis-profile=soak", f"--hypothesis-seed={seed}"]
    return subprocess.run([*command, str(CORE), f"--ignore={RATES}"], check=False).returncode


def main(arguments: list[str]) -> int:
    """Soak; return 0 when no round failed."""
    parser = argparse.ArgumentParser(description="property tests with new random examples")
    parser.add_argument("--minutes", type=float, default=10.0, help="no round starts later")
    parser.add_argument("--seed", type=int, help="run one round with this seed")
    options = parser.parse_args(arguments)
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
