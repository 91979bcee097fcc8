"""Property tests draw the same examples in every run, regardless of earlier imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import benchpool_support

SUPPORT = Path(benchpool_support.__path__[0]).parent

SEES = """
import sys
sys.path[:0] = {folders}
from hypothesis import given, strategies as st
import benchpool_support.examples
for name in {imported}:
    __import__(name)
drawn = []

@given(st.integers(), st.floats(), st.text())
def test(number, part, text):
    drawn.append((number, part, text))

test()
print(drawn)
"""
CONSTANTS = "\n".join(f"N{n} = {n * 7919 + 1_000_003}; T{n} = 'text {n}'" for n in range(50))


def drawn(folder: Path, *imported: str) -> str:
    program = SEES.format(folders=[str(folder), str(SUPPORT)], imported=imported)
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def test_drawn_examples_are_independent_of_imports(tmp_path: Path) -> None:
    (tmp_path / "full_of_numbers.py").write_text(CONSTANTS)
    assert drawn(tmp_path, "full_of_numbers") == drawn(tmp_path)
