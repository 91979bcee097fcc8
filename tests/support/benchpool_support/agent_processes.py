"""The agent of a worker's pod as a local process with its folders in a temporary root."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from benchpool_scheduler.runtime.kubernetes import agent_config, agent_zipapp
from benchpool_scheduler.runtime.kubernetes.agent import paths
from benchpool_support.waiting import PATIENCE_S

ELSEWHERE = """
import sys
root, zipped = sys.argv[1:]
sys.path.insert(0, zipped)
from benchpool_scheduler.runtime.kubernetes.agent import paths
for name, value in list(vars(paths).items()):
    if name.isupper() and str(value).startswith("/"):
        setattr(paths, name, root + value)
from benchpool_scheduler.runtime.kubernetes.agent.run import main
main()
"""


class AgentProcess:
    """Agent process with its supervisor and its command.

    Args:
        pod: Folder that stands for the root of the pod.
        config: Configuration as ``agent_config`` writes it.
        index: Index of the worker.
        token: Token that proves the worker's identity to the scheduler.
    """

    def __init__(self, pod: Path, config: dict[str, object], index: int, token: str) -> None:
        self.pod = pod
        self._index = index
        for folder in (paths.ROOT, paths.CONFIG_FOLDER, "/dev"):
            (pod / folder.lstrip("/")).mkdir(parents=True)
        agent_zipapp.write(self._at(paths.AGENT))
        order = self._at(paths.CONFIG_FOLDER)
        own = {**config, "checkpoint": str(self._at(paths.CHECKPOINT))}
        (order / paths.CONFIG_FILE).write_bytes(agent_config.pack(own))
        (order / paths.TOKEN.format(index=index)).write_text(token)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the agent."""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", ELSEWHERE, str(self.pod), str(self._at(paths.AGENT))],
            env={"PATH": os.environ["PATH"], paths.INDEX: str(self._index)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )

    def end(self) -> int:
        """Wait until the agent has ended and return its exit code."""
        assert self._process is not None
        return self._process.wait(PATIENCE_S)

    def _at(self, path: str) -> Path:
        return self.pod / path.lstrip("/")
