"""The agent as one file that runs in any Python of an image without other packages."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

from benchpool_scheduler.runtime.kubernetes import agent_zipapp
from benchpool_scheduler.runtime.kubernetes.agent import environment, paths
from benchpool_scheduler.runtime.kubernetes.agent.config import AgentConfig
from benchpool_scheduler.worker import job_package

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


def test_agent_loads_only_standard_library(tmp_path: Path) -> None:
    target = tmp_path / "agent.pyz"
    agent_zipapp.write(target)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", LOOK, str(target)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""


def test_agent_archive_includes_job_package(tmp_path: Path) -> None:
    agent_zipapp.write(tmp_path / "agent.pyz")
    with zipfile.ZipFile(tmp_path / "agent.pyz") as own:
        package = Path(own.extract(job_package.NAME, tmp_path))
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            "from benchpool import checkpoint; print(checkpoint.__file__)",
        ],
        env={"PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(package))


def test_job_package_is_last_in_python_path(tmp_path: Path) -> None:
    order = {
        **dict.fromkeys(("job", "url", "checkpoint"), "x"),
        **dict.fromkeys(("cwd", "home", "time_limit_s", "carries"), None),
        **dict.fromkeys(("files", "objects", "argv"), ()),
        **dict.fromkeys(("attempt", "grace_s", "log_bytes", "carry_bytes", "gpus", "port"), 1),
        **{"workers": 1, "processes": 1, "master": "127.0.0.1", "env": {"PYTHONPATH": "/mine"}},
    }
    config = AgentConfig(json.dumps(order).encode(), 0, "token")
    found = environment.environment(config, {"PYTHONPATH": "/of/the/image"})
    assert found["PYTHONPATH"] == f"/mine:{paths.PACKAGE}"
    assert environment.environment(config, {"PATH": "/bin"})["PATH"] == "/bin"
    assert not {"RANK", "WORLD_SIZE", "LOCAL_RANK"} & found.keys()


def test_agent_archive_is_reproducible(tmp_path: Path) -> None:
    agent_zipapp.write(tmp_path / "one")
    agent_zipapp.write(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_agent_without_config_exits_with_message(tmp_path: Path) -> None:
    target = tmp_path / "agent.pyz"
    agent_zipapp.write(target)
    done = subprocess.run([sys.executable, "-I", str(target)], capture_output=True, text=True)
    assert done.returncode == 2
    assert "no configuration" in done.stderr
    assert "Traceback" not in done.stderr


def test_job_package_is_written_into_foreign_folder(tmp_path: Path) -> None:
    theirs = tmp_path / "benchpool"
    theirs.mkdir(mode=0o733)
    theirs.chmod(0o1733)
    package = theirs / "python" / job_package.NAME
    job_package.write(package, b"zip")
    assert package.read_bytes() == b"zip"
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o1733, "its mode is not ours to change"
    assert stat.S_IMODE(package.parent.stat().st_mode) == 0o755
