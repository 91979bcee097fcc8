"""Records of earlier releases are read under their present names."""

from __future__ import annotations

import msgspec

from benchpool_scheduler.core.lifecycle.states import Intent, JobState
from benchpool_scheduler.store.records import JobRecord


def test_stop_request_is_read_and_stored_under_its_first_name() -> None:
    former = {
        **{"id": "a", "name": "train", "project": "vision", "user": "susan", "state": "pausing"},
        **{"submitted": 1.0, "queued_since": 1.0, "wish": {"kind": "pause", "at": 2.0}},
    }
    record = msgspec.convert(former, JobRecord)
    assert record.state is JobState.PAUSING
    assert record.stop_request is not None
    assert record.stop_request.kind is Intent.PAUSE
    assert msgspec.to_builtins(record)["wish"]["kind"] == "pause"
