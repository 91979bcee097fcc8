"""The agent is one file that any Python of an image runs, with nothing else installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchpool_scheduler.runtime.kubernetes import agent_zipapp

LOOK = """
import sys
sys.path.insert(0, sys.argv[1])
import benchpool_scheduler.runtime.kubernetes.agent.run
import benchpool_scheduler.worker.supervisor.run
for name, module in sorted(sys.modules.items()):
    file = getattr(module, "__file__", None) or ""
    if file and not file.startswith((sys.argv[1], sys.base_prefix)):
        print(name, file)
"""


def test_it_loads_nothing_but_itself_and_the_standard_library(tmp_path: Path) -> None:
    target = tmp_path / "agent.pyz"
    agent_zipapp.write(target)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOOK, str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""


def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    agent_zipapp.write(tmp_path / "one")
    agent_zipapp.write(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_it_ends_with_a_sentence_where_it_has_no_order(tmp_path: Path) -> None:
    target = tmp_path / "agent.pyz"
    agent_zipapp.write(target)
    done = subprocess.run([sys.executable, "-I", str(target)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no order" in done.stderr
    assert "Traceback" not in done.stderr
