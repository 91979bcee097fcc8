"""A scheduler without notifications does not load their libraries."""

from __future__ import annotations

import json
import subprocess
import sys

LOADED = "import json, sys; print(json.dumps(sorted(sys.modules)))"


def test_service_starts_without_chat_library() -> None:
    code = f"import benchpool_scheduler.service, benchpool_scheduler.api\n{LOADED}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    modules = set(json.loads(done.stdout))
    assert "benchpool_scheduler.notifications.sending" in modules
    assert not modules & {"apprise", "requests", "markdown"}
