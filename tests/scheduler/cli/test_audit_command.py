"""``benchpool audit`` and ``benchpool audit verify``."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import Benchpool


def test_administrator_reads_and_verifies_audit_trail(benchpool: Benchpool, tmp_path: Path) -> None:
    sent = benchpool("submit", "--name", "fit", "--json", "--", sys.executable, "-c", "pass").json
    benchpool("change", sent["id"], "--priority", "70", by="root")
    shown = benchpool("audit", "--actor", "root", by="root")
    assert shown.status == 0, shown.err
    assert "priority 50 → 70" in " ".join(shown.out.split())
    assert "submit" not in shown.out
    narrowed = benchpool("audit", "--target", sent["id"][:8], "--since", "1h", "--json", by="root")
    assert {one["action"] for one in narrowed.json["records"]} == {"submit", "change"}

    holds = benchpool("audit", "verify", by="root")
    assert (holds.status, "The audit trail is intact" in holds.out) == (0, True)
    noted = holds.out.strip().splitlines()[-1].split()[1:]  # as a user types it again
    assert benchpool(*noted, by="root").status == 0

    file = next((tmp_path / "state" / "scheduler" / "audit").glob("*.jsonl"))
    file.write_bytes(file.read_bytes().replace(b'"fit"', b'"tif"'))
    broken = benchpool("audit", "verify", by="root")
    assert (broken.status, "is not intact" in broken.out) == (1, True)


def test_non_administrator_is_rejected(benchpool: Benchpool) -> None:
    for words in (("audit",), ("audit", "verify")):
        result = benchpool(*words)
        assert (result.status, "administrator" in result.err) == (3, True), result


def test_events_show_actions_and_stop_requires_reason(
    benchpool: Benchpool,
) -> None:
    code = "import time; time.sleep(600)"
    sent = benchpool("submit", "--name", "=fit", "--json", "--", sys.executable, "-c", code).json
    refused = benchpool("cancel", sent["id"], by="root")
    assert (refused.status, "--reason" in refused.err) == (2, True), refused
    tried = " ".join(benchpool("audit", "--actor", "root", by="root").out.split())
    assert f"cancel {sent['id']} refused: " in tried
    done = benchpool("cancel", sent["id"], "--reason", "power cut", by="root")
    assert done.status == 0, done.err
    shown = benchpool("events", "--search", "POWER", by="root")
    assert f"cancel {sent['id']}: " in " ".join(shown.out.split())
    assert "power cut" in " ".join(shown.out.split())
    assert "submit" not in shown.out
    listed = benchpool("events", "--csv", by="root").out
    assert listed.startswith("number,at,actor,")
    assert "reason-missing" not in listed
    assert benchpool("cancel", sent["id"]).status in (0, 3)  # own jobs need no reason
    assert benchpool("events").status == 3
