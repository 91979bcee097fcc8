"""Log offsets by time: never late, and at most one mark's interval early."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.worker import log_reader
from benchpool_scheduler.worker.log_files import FINE_S
from benchpool_scheduler.worker.log_writer import LogWriter


@given(
    pauses=st.lists(st.floats(0, 5), min_size=1, max_size=40),
    asked=st.floats(-5, 200),
)
def test_log_offset_is_found_by_time(pauses: list[float], asked: float) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        now, written = 1000.0, []
        patch.setattr(time, "time", lambda: now)
        writer = LogWriter(folder)
        for number, pause in enumerate(pauses):
            now += pause
            written.append((now, number * 2))
            writer.write(b"x\n")
        writer.close()
        found = log_reader.offset_at(Path(folder), 1000.0 + asked)
    first = next((offset for at, offset in written if at >= 1000.0 + asked), len(pauses) * 2)
    early = [at for at, offset in written if found <= offset < first]
    assert found <= first
    assert all(1000.0 + asked - at < FINE_S for at in early)


def test_log_without_times_gives_end_offset(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"abc")
    assert log_reader.offset_at(tmp_path, 0.0) == 3
