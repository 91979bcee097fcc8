"""Child process for the driver's calls: one line of JSON for each call, and one for its answer.

The answer to ``["lock", PID, 5000]`` is ``{"ok": null}``, or ``{"call": ..., "code": ..., "name":
...}`` if the driver rejects the call. The library is loaded once, for the first line.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from benchpool_scheduler.runtime.local.parking.libcuda import CudaError, Libcuda

ACTIONS: Mapping[str, Callable[..., Any]] = {
    "version": Libcuda.version,
    "state": Libcuda.state,
    "lock": Libcuda.lock,
    "checkpoint": Libcuda.checkpoint,
    "restore": Libcuda.restore,
    "unlock": Libcuda.unlock,
}


def main() -> None:
    """Answer line by line until the input ends."""
    library: Libcuda | None = None
    for line in sys.stdin:
        action, *arguments = json.loads(line)
        try:
            library = library or Libcuda()
            answer: object = {"ok": ACTIONS[action](library, *arguments)}
        except CudaError as error:
            answer = {"call": error.call, "code": error.code, "name": error.name}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
