"""The driver of this machine, called in a child process that may hang without harm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from benchpool_scheduler.core.benches.parking import CudaState
from benchpool_scheduler.runtime.local.parking import children
from benchpool_scheduler.runtime.local.parking.driver import CallFailed, CallHung

LOCK_S = 10.0
"""Timeout for an idle process to finish its work on the GPU, in seconds."""

TIMES_S: Mapping[str, float] = MappingProxyType(
    {
        "version": 60.0,
        "state": 30.0,
        "lock": LOCK_S + 30.0,
        "checkpoint": 300.0,
        "restore": 300.0,
        "unlock": 60.0,
    }
)
"""Timeouts for calls of the driver, in seconds.

Published measurements for copying 80 GB are about 15 s; a start of the library takes 3 s.
"""

MODULE = "benchpool_scheduler.runtime.local.parking.libcuda_process"


class LibcudaDriver:
    """``CheckpointDriver`` for ``libcuda.so.1``; close it after use. Not thread-safe.

    Its process starts with the first call and is kept. A process that hangs is killed and
    abandoned.
    """

    def __init__(self, times_s: Mapping[str, float] = TIMES_S) -> None:
        self._times_s = times_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LibcudaDriver:
        """Return the driver itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the driver."""
        self.close()

    def close(self) -> None:
        """End the process, which holds no CUDA state."""
        process, self._process = self._process, None
        if process is not None:
            children.abandon(process)

    def version(self) -> int:
        """See ``CheckpointDriver``."""
        return int(self._ask("version"))

    def state(self, pid: int) -> CudaState:
        """See ``CheckpointDriver``."""
        return CudaState(self._ask("state", pid))

    def lock(self, pid: int) -> None:
        """See ``CheckpointDriver``."""
        self._ask("lock", pid, int(LOCK_S * 1000))

    def checkpoint(self, pid: int) -> None:
        """See ``CheckpointDriver``."""
        self._ask("checkpoint", pid)

    def restore(self, pid: int, gpus: Mapping[str, str]) -> None:
        """See ``CheckpointDriver``."""
        self._ask("restore", pid, dict(gpus))

    def unlock(self, pid: int) -> None:
        """See ``CheckpointDriver``."""
        self._ask("unlock", pid)

    def _ask(self, action: str, *arguments: object) -> Any:
        process = self._process = self._process or _start()
        children.ask(process, json.dumps([action, *arguments]).encode())
        line = children.answer(process, self._times_s[action])
        if not line:
            self.close()
            if line is None:
                raise CallHung(action, self._times_s[action])
            raise CallFailed(action, None, "the process that calls the driver has ended")
        answer = json.loads(line)
        if "ok" not in answer:
            raise CallFailed(answer["call"], answer["code"], answer["name"])
        return answer["ok"]


def _start() -> subprocess.Popen[bytes]:
    # All GPUs are visible, since a restored process may be on any of them.
    hidden = "CUDA_VISIBLE_DEVICES"
    return children.start(MODULE, {key: it for key, it in os.environ.items() if key != hidden})
