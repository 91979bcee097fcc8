"""Failed tests are run again, and tests that then pass are reported as flaky
(``tests/suite.py``).
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchpool_support import checkout

pytestmark = pytest.mark.slow

RUN = """\
import pathlib, sys
sys.path.insert(0, {folder!r})
import suite
suite.SUITES["sample"] = (suite.Stage("sample", ("tests",), suite.spread(2)),)
suite.ROOT = pathlib.Path({root!r})
suite.LEFT_S = {left_s}
suite.MOST_FLAKY = {most}
sys.exit(suite.main(["sample", "--record", {record!r}, "-p", "no:cacheprovider", *{options!r}]))
"""
BY_CHANCE = """\
from pathlib import Path
def test_first_no_then_yes_{number}():
    path = Path(__file__).with_name("seen-{number}")
    seen = path.exists()
    path.touch()
    assert seen, "the first time"
"""
ALWAYS = "def test_never():\n    assert False, 'always'\n"
LEAVES = """\
import subprocess
def test_leaves_a_process():
    subprocess.Popen(["sleep", "3600"], start_new_session=True)
"""
WORKS_ON = """\
import subprocess, sys
def test_leaves_a_process_that_works_on():
    works = "import time\\nwhile time.process_time() < 2: pass"
    subprocess.Popen([sys.executable, "-c", works], start_new_session=True)
"""


@dataclass(frozen=True)
class Ran:
    """Output and records of a run of a suite."""

    status: int
    output: str
    flaky: list[str]
    failed: list[str]
    counts: str


def ran(
    root: Path, *sources: str, most: int = 5, left_s: float = 60.0, options: tuple[str, ...] = ()
) -> Ran:
    """Run these tests as a suite of one stage."""
    tests = root / "tests"
    tests.mkdir()
    support = checkout.ROOT / "tests/support"
    (tests / "conftest.py").write_text((checkout.ROOT / "tests/conftest.py").read_text())
    for number, source in enumerate(sources):
        (tests / f"test_sample_{number}.py").write_text(source.replace("{number}", str(number)))
    (root / "pytest.ini").write_text(f"[pytest]\npythonpath = {shlex.quote(str(support))}\n")
    program = RUN.format(
        folder=str(checkout.ROOT / "tests"),
        root=str(root),
        record=str(root / "record"),
        most=most,
        left_s=left_s,
        options=options,
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )

    def names(file: str) -> list[str]:
        lines = (root / "record" / file).read_text().splitlines()
        return [line.rpartition("::")[2] for line in lines]

    counts = (root / "record/sample.counts").read_text().strip()
    return Ran(done.returncode, done.stdout, names("flaky.names"), names("failed.names"), counts)


def test_single_failure_is_flaky_and_repeated_failure_fails(tmp_path: Path) -> None:
    found = ran(tmp_path, BY_CHANCE, ALWAYS, "def test_fine():\n    pass\n")
    assert (found.status, found.flaky) == (1, ["test_first_no_then_yes_0"]), found.output
    assert (found.failed, found.counts) == (["test_never"], "1 1 1")
    assert "Flaky: 1 failed first" in found.output
    assert "the first time" in (tmp_path / "record/flaky.txt").read_text()
    assert "\n2 passed, 1 failed, 0 skipped\n" in found.output


def test_number_of_flaky_tests_is_limited(tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    few = ran(tmp_path / "few", BY_CHANCE, BY_CHANCE, most=2)
    assert (few.status, few.failed, few.counts) == (0, [], "0 2 0"), few.output
    (tmp_path / "many").mkdir()
    many = ran(tmp_path / "many", BY_CHANCE, BY_CHANCE, most=1)
    assert (many.status, many.failed, len(many.flaky)) == (1, [], 2), many.output


def test_stage_leaving_process_is_flaky_and_process_is_killed(
    tmp_path: Path,
) -> None:
    found = ran(tmp_path, LEAVES, most=0, left_s=1.0)
    assert (found.status, found.counts) == (1, "1 1 0"), found.output
    lines = found.output.splitlines()
    left = lines[lines.index("Left behind by the stage 'sample':") + 1]
    assert left.endswith("sleep 3600")
    assert not Path("/proc", left.split()[0]).exists()
    assert "\n1 passed, 0 failed, 0 skipped\n" in found.output


def test_processor_time_counts_orphaned_processes(tmp_path: Path) -> None:
    found = ran(tmp_path, WORKS_ON)
    seconds = re.search(r"^Processor time of all processes: ([0-9.]+) s$", found.output, re.M)
    assert seconds is not None, found.output
    assert float(seconds[1]) >= 2.0


def test_record_keeps_flaky_tests_of_other_suites(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir()
    (tmp_path / "record/other.flaky").write_text("test_of_the_other_suite\n")
    ran(tmp_path, BY_CHANCE)
    flaky = (tmp_path / "record/flaky.txt").read_text()
    assert "test_of_the_other_suite" in flaky
    assert "test_first_no_then_yes_0" in flaky


def test_named_tests_run_alone(tmp_path: Path) -> None:
    found = ran(
        tmp_path, ALWAYS, "def test_fine():\n    pass\n", options=("tests/test_sample_1.py",)
    )
    assert (found.status, found.counts) == (0, "1 0 0"), found.output


def test_unreadable_file_fails_run(tmp_path: Path) -> None:
    found = ran(tmp_path, "import nothing_of_this_name\n")
    assert found.status == 1, found.output


def test_flaky_table_passes_its_doctest() -> None:
    command = [sys.executable, "-m", "doctest", str(checkout.ROOT / "tests/flaky.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == ""
