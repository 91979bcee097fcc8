"""Process for one request of a kernel without benchpool: lines of JSON on stdin and stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Any

from benchpool.foreign.requests import handle
from benchpool_scheduler.errors import BenchpoolError


def main() -> None:
    """Answer one request. Whatever is printed goes to the cell that sent it."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def write(message: Mapping[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    def ask(message: Mapping[str, Any]) -> Any:
        write(message)
        return json.loads(sys.stdin.readline())["answer"]

    try:
        result = handle(sys.stdin.readline(), ask)
    except (BenchpoolError, TypeError) as refused:
        write({"refused": getattr(refused, "message", str(refused))})
    else:
        write({"result": result})


if __name__ == "__main__":
    main()
