"""Run the tests in stages, then run the failed tests again by themselves.

    python tests/suite.py test [--record DIR] [FILE...] [PYTEST OPTION...]

Files, folders or names of tests run in one stage, instead of those of the suite.

Stages run one after the other. Failed tests then run again in one process with nothing beside it.
Tests that pass now are *flaky*: they are printed with their first failure and written to
``flaky.txt`` in the folder of the record, beside those of other suites. A stage that leaves
processes behind counts as flaky too; these processes are killed. The suite fails when a test fails
twice, and when more than ``MOST_FLAKY`` are flaky.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
MOST_FLAKY = 5
"""Maximum number of flaky tests in a run that passes."""
MOST_LOOKED_AT_TWICE = 25
"""Maximum number of failures in a run that get a second run; more are no accident."""
LEFT_S = 60.0
"""Timeout for processes to end after the stage that started them, in seconds."""
LEFT = "left behind"
"""Part of a stage in which processes outlived it."""
PR_SET_CHILD_SUBREAPER = 36
NO_TESTS = 5
"""Exit status of pytest when every test was deselected."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Tests that run at the same time.

    Attributes:
        name: Name for the output.
        select: Options of pytest that select the tests, also when they run again.
        spread: Options of pytest for the number of processes.
    """

    name: str
    select: tuple[str, ...]
    spread: tuple[str, ...] = ()


def spread(processes: int, how: str = "loadfile") -> tuple[str, ...]:
    """Return the options of pytest for tests in several processes."""
    return ("-n", str(processes), "--dist", how, "--no-loadscope-reorder")


SERVERS = ("tests/e2e", "tests/workstation", "tests/spawner")
"""Folders whose tests start Hubs and browsers; each test process needs two processors."""
TRACKERS = "tests/trackers"
"""Folder whose tests need an environment of their own (``make test-trackers``)."""
PLAIN = "not alone and not kubernetes"
ALONE = tuple(
    str(path.relative_to(ROOT))
    for path in sorted((ROOT / "tests").rglob("test_*.py"))
    if "mark.alone" in path.read_text()
)
CHOSEN = (
    "tests/helm/test_helm_release.py",
    "tests/helm/test_account_permissions.py",
    "tests/kubernetes/story/test_gang_reclaim.py",
    "tests/kubernetes/story/test_pod_pause_phases.py",
    "tests/kubernetes/story/test_component_failures.py",
    # The four-minute outage of an API server is part of `make test-kubernetes`.
    "--deselect=tests/kubernetes/story/test_component_failures.py::"
    "test_jobs_survive_two_minute_api_server_outage",
)
"""Tests of a cluster that every change passes.

They cover the chart, a notebook with a GPU, a gang sent from it, a pause, the loss of each part,
rights and the end of a release.
"""
SUITES = {
    "test": (
        Stage(
            "tests",
            ("tests", *(f"--ignore={one}" for one in (*SERVERS, TRACKERS)), "-m", PLAIN),
            spread(3),
        ),
        Stage("servers", (*SERVERS, "-m", PLAIN), spread(2)),
        Stage("alone", (*ALONE, "-m", "alone and not kubernetes"), ("-n", "2", "--dist", "load")),
    ),
    "test-fast": (
        Stage(
            "fast tests",
            (
                *("tests", "--ignore=tests/e2e", f"--ignore={TRACKERS}"),
                "--hypothesis-profile=fast",
                *("-m", "not slow and not e2e and not kubernetes"),
            ),
            spread(4, "worksteal"),
        ),
    ),
    "test-trackers": (Stage("trackers", (TRACKERS,), spread(2)),),
    "test-kubernetes": (
        Stage("control planes", ("tests", "-m", "kubernetes and not nodes")),
        Stage("nodes", ("tests", "-m", "nodes")),
    ),
    "test-cluster": (Stage("chosen tests on a cluster", (*CHOSEN, "-m", "kubernetes")),),
}


@dataclass(slots=True)
class Results:
    """Results of the stages of a run.

    Attributes:
        passed, skipped: Numbers of tests.
        flaky: First failures of the tests that passed when they ran again.
        failed: Tests that failed twice.
        broken: A stage failed in another way than by its tests.
    """

    passed: int = 0
    skipped: int = 0
    flaky: list[dict[str, Any]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    broken: bool = False


def run(command: Sequence[str]) -> tuple[int, list[str]]:
    """Run a command; return its exit status and the command lines of processes that outlived it.

    Processes that lose their parent become children of this one. They are reaped immediately, since
    tests wait for their process IDs to disappear, and killed at the end.
    """
    own, status, until = os.posix_spawn(command[0], list(command), os.environ), 0, 0.0
    try:
        while not until or time.monotonic() < until:
            pid, ended = os.waitpid(-1, os.WNOHANG if until else 0)
            if pid == own:
                status, until = os.waitstatus_to_exitcode(ended), time.monotonic() + LEFT_S
            elif not pid:
                time.sleep(0.1)
    except ChildProcessError:
        return status, []
    return status, _end(psutil.Process().children(recursive=True))


def _end(processes: Sequence[psutil.Process]) -> list[str]:
    """Kill processes and return their command lines."""
    lines = []
    for one in processes:
        try:
            lines.append(f"{one.pid} {' '.join(one.cmdline())}")
            one.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(processes, timeout=LEFT_S)
    return lines


def run_stage(
    stage: Stage, options: Sequence[str], only: Sequence[str] | None = None
) -> tuple[list[dict[str, Any]], dict[str, int], bool]:
    """Run the tests of a stage, or some of them in one process.

    Returns:
        Its failures, its counts, and whether it broke: pytest itself failed, or a file could not
        be read. Processes that outlived it are a failure by themselves.
    """
    with tempfile.TemporaryDirectory() as folder:
        outcomes, names = Path(folder, "outcomes"), Path(folder, "only")
        command = [sys.executable, "-m", "pytest", f"--outcomes={outcomes}", *options]
        if only is None:
            command += [*stage.select, *stage.spread]
        else:
            names.write_text("\n".join(only))
            files = {one.partition("::")[0] for one in only}
            profile = [one for one in stage.select if one.startswith("--hypothesis-profile")]
            command += [*sorted(files), f"--only={names}", *profile]
        status, left = run(command)
        lines = outcomes.read_text().splitlines() if outcomes.exists() else []
    facts = [json.loads(line) for line in lines]
    failures = [fact for fact in facts if "test" in fact]
    counts = facts[-1] if facts and "passed" in facts[-1] else {}
    if left:
        text = "\n".join(left)
        print(f"Left behind by the stage {stage.name!r}:\n{text}", flush=True)
        failures.append(
            {"test": f"stage {stage.name}", "part": LEFT, "load": os.getloadavg()[0], "text": text}
        )
    unread = any(fact["part"] == "collect" for fact in failures)
    whole = status in (0, NO_TESTS) or (status == 1 and bool(failures))
    return failures, counts, unread or not whole


def look_again(
    stage: Stage, failures: Sequence[dict[str, Any]], options: Sequence[str]
) -> tuple[list[dict[str, Any]], bool]:
    """Run failed tests again; return the first failures of the tests that pass now."""
    left = [fact for fact in failures if fact["part"] == LEFT]
    names = list(dict.fromkeys(fact["test"] for fact in failures if fact["part"] != LEFT))
    if not names:
        return left, False
    print(f"\n=== {len(names)} failed in the stage {stage.name!r} and run once more", flush=True)
    again, counts, broken = run_stage(stage, options, names)
    twice = {fact["test"] for fact in again if fact["part"] != LEFT}
    left += [fact for fact in again if fact["part"] == LEFT][: 1 - len(left)]
    broken = broken or counts.get("passed", 0) + len(twice) < len(names)
    if broken:
        return left, True
    first = {fact["test"]: fact for fact in reversed(failures) if fact["part"] != LEFT}
    return left + [fact for name, fact in first.items() if name not in twice], False


def described(fact: dict[str, Any]) -> str:
    """Return a flaky test with the load average at its failure and that failure's last lines."""
    text = "\n".join("    " + line for line in fact["text"].splitlines())
    return f"{fact['test']} ({fact['part']}, load average {fact['load']:.1f})\n{text}\n"


def stages_of(name: str, options: Sequence[str]) -> tuple[tuple[Stage, ...], list[str]]:
    """Return the stages of a suite, or one of the named tests, and the other options."""
    named = [one for one in options if (ROOT / one.partition("::")[0]).exists()]
    others = [one for one in options if one not in named]
    return ((Stage("named tests", tuple(named)),) if named else SUITES[name]), others


def run_suite(name: str, arguments: Sequence[str]) -> Results:
    """Run the stages of a suite, then its failed tests again."""
    results, failed = Results(), list[tuple[Stage, list[dict[str, Any]]]]()
    stages, options = stages_of(name, arguments)
    for stage in stages:
        print(f"\n=== Stage: {stage.name}", flush=True)
        began = time.monotonic()
        failures, counts, broken = run_stage(stage, options)
        print(f"=== Stage: {stage.name}: {time.monotonic() - began:.0f} s", flush=True)
        results.passed += counts.get("passed", 0)
        results.skipped += counts.get("skipped", 0)
        results.broken |= broken
        failed += [(stage, failures)] if failures else []
    names = {fact["test"] for _, failures in failed for fact in failures}
    for stage, failures in failed if len(names) <= MOST_LOOKED_AT_TWICE else ():
        passed_now, broken = look_again(stage, failures, options)
        results.flaky += passed_now
        results.broken |= broken
    results.failed = sorted(names - {fact["test"] for fact in results.flaky})
    return results


def processor_s() -> float:
    """Return the processor time of all processes, including those without a parent, in seconds.

    On N cores no order of the tests takes less than an N-th of it.
    """
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(name: str, results: Results, record: Path) -> int:
    """Print and write the flaky and the failed tests; return the exit status."""
    flaky, failed = results.flaky, results.failed
    record.mkdir(parents=True, exist_ok=True)
    (record / f"{name}.flaky").write_text("\n".join(described(fact) for fact in flaky))
    every = [path.read_text() for path in sorted(record.glob("*.flaky"))]
    (record / "flaky.txt").write_text("\n".join(text for text in every if text))
    (record / "flaky.names").write_text("\n".join(fact["test"] for fact in flaky))
    (record / "failed.names").write_text("\n".join(failed))
    (record / f"{name}.counts").write_text(f"{results.passed} {len(flaky)} {len(failed)}\n")
    if failed:
        print("\nFailed twice, or too many to run again:\n" + "\n".join(failed))
    if flaky:
        print(f"\nFlaky: {len(flaky)} failed first and passed by themselves, or left processes\n")
        print("\n".join(described(fact) for fact in flaky))
    if len(flaky) > MOST_FLAKY:
        print(f"{len(flaky)} flaky tests are more than {MOST_FLAKY}, so the run has failed.")
    # A flaky test has passed in the end.
    passed = results.passed + sum(fact["part"] != LEFT for fact in flaky)
    print(f"{passed} passed, {len(failed)} failed, {results.skipped} skipped")
    print(f"Processor time of all processes: {processor_s():.1f} s", flush=True)
    return int(bool(failed) or results.broken or len(flaky) > MOST_FLAKY)


def main(arguments: Sequence[str]) -> int:
    """Run the named suite."""
    parser = argparse.ArgumentParser(prog="tests/suite.py", description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--record", type=Path, default=ROOT / ".stamps", metavar="DIR")
    chosen, options = parser.parse_known_args(arguments)
    record = chosen.record.absolute()
    os.chdir(ROOT)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return report(chosen.suite, run_suite(chosen.suite, options), record)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
