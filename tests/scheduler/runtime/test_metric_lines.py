"""The metrics file of a worker is read while it grows, whatever its content."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.runtime.kubernetes.agent import shipping
from benchpool_scheduler.runtime.kubernetes.agent.link import LinkAway
from benchpool_scheduler.worker import metric_lines, records
from benchpool_scheduler.worker.metric_lines import MetricReader, ReportedValue


def append(folder: Path, *lines: object) -> None:
    with (folder / records.METRICS).open("a") as file:
        file.writelines(it if isinstance(it, str) else json.dumps(it) + "\n" for it in lines)


def loss(step: int, value: float | None = 1.0) -> dict[str, object]:
    return {"at": 100.0 + step, "step": step, "values": {"loss": value}}


def steps(reader: MetricReader) -> list[int | None]:
    return [it.step for it in reader.read()]


def test_metric_lines_are_read_once_and_partial_lines_later(tmp_path: Path) -> None:
    reader = MetricReader(tmp_path, speaks=True)
    assert reader.read() == []
    append(tmp_path, loss(1), '{"at": 102, "step": 2, "val')
    assert reader.read() == [ReportedValue("loss", 1.0, 101.0, 1)]
    append(tmp_path, 'ues": {"loss": 0.5}}\n')
    assert reader.read() == [ReportedValue("loss", 0.5, 102.0, 2)]
    assert reader.read() == []


def test_rotated_metrics_file_is_followed_without_loss(
    tmp_path: Path,
) -> None:
    reader, current = MetricReader(tmp_path, speaks=True), tmp_path / records.METRICS
    append(tmp_path, loss(1))
    assert steps(reader) == [1]
    append(tmp_path, loss(2))
    os.replace(current, tmp_path / records.METRICS_BEFORE)
    assert steps(reader) == [2]
    assert steps(reader) == []
    append(tmp_path, loss(3))
    assert steps(reader) == [3]
    assert steps(MetricReader(tmp_path, speaks=True)) == [1, 2], "who begins reads all of it"


@pytest.mark.parametrize("opened_first", [True, False])
def test_rotation_during_read_loses_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened_first: bool
) -> None:
    reader, current = MetricReader(tmp_path, speaks=True), tmp_path / records.METRICS
    append(tmp_path, loss(1))
    assert steps(reader) == [1]
    append(tmp_path, loss(2))
    genuine = records.open_regular

    def rotate_meanwhile(path: str) -> int:
        monkeypatch.setattr(records, "open_regular", genuine)
        file = genuine(path) if opened_first else None
        os.replace(current, tmp_path / records.METRICS_BEFORE)
        append(tmp_path, loss(3))
        return genuine(path) if file is None else file

    monkeypatch.setattr(records, "open_regular", rotate_meanwhile)
    assert [*steps(reader), *steps(reader), *steps(reader)] == [2, 3]


def test_unread_rotated_file_is_read_beyond_invalid_lines(tmp_path: Path) -> None:
    before = tmp_path / records.METRICS_BEFORE
    before.write_bytes(b"x" * 60 + b"\n" + (b"x" * 1023 + b"\n") * (metric_lines.PIECE // 1024))
    with before.open("a") as file:
        file.write(json.dumps(loss(1)) + "\n")
    append(tmp_path, loss(2))
    reader = MetricReader(tmp_path, speaks=True)
    found = steps(reader)
    while reader.behind:
        found += steps(reader)
    assert found == [1, 2]


def test_truncated_metrics_file_is_read_from_start(tmp_path: Path) -> None:
    reader = MetricReader(tmp_path, speaks=True)
    append(tmp_path, loss(1), loss(2))
    assert steps(reader) == [1, 2]
    (tmp_path / records.METRICS).write_text("")
    append(tmp_path, loss(3))
    assert steps(reader) == [3]


def test_progress_file_metrics_have_no_step(tmp_path: Path) -> None:
    (tmp_path / records.PROGRESS).write_text('{"fraction": 0.1, "metrics": {"loss": 2}}')
    (found,) = MetricReader(tmp_path, speaks=True).read()
    assert (found.name, found.value, found.step) == ("loss", 2.0, None)
    assert MetricReader(tmp_path, speaks=False).read() == []


def test_nan_becomes_none_and_invalid_metrics_are_skipped(tmp_path: Path) -> None:
    append(tmp_path, '{"at": 1, "step": 1, "values": {"loss": NaN, "b": "x", "c": true}}\n')
    append(tmp_path, "[1]\n", '{"at": 1, "step": -1, "values": {"a": 1}}\n', "{" * 5000 + "\n")
    append(tmp_path, {"at": 1, "step": 1.5, "values": {"a": 1}}, {"at": None, "values": {"a": 1}})
    found = MetricReader(tmp_path, speaks=True).read()
    assert found == [ReportedValue("loss", None, 1.0, 1)]


def test_link_or_pipe_as_metrics_file_is_not_read(tmp_path: Path) -> None:
    os.symlink("/etc/passwd", tmp_path / records.METRICS)
    assert MetricReader(tmp_path, speaks=True).read() == []
    (tmp_path / records.METRICS).unlink()
    os.mkfifo(tmp_path / records.METRICS)
    assert MetricReader(tmp_path, speaks=True).read() == []


def test_many_metrics_are_read_in_batches_without_loss(tmp_path: Path) -> None:
    append(tmp_path, *(loss(step) for step in range(3 * metric_lines.VALUES + 7)))
    reader, looks = MetricReader(tmp_path, speaks=True), [list[int | None]()]
    while reader.behind or not looks[-1]:
        looks.append(steps(reader))
    assert looks.pop(0) == []
    assert [len(look) for look in looks] == [metric_lines.VALUES] * 3 + [7]
    assert [step for look in looks for step in look] == list(range(3 * metric_lines.VALUES + 7))


def test_unterminated_text_does_not_block_later_metrics(tmp_path: Path) -> None:
    (tmp_path / records.METRICS).write_bytes(b"x" * (metric_lines.PIECE + 10) + b"\r\n")
    append(tmp_path, loss(5))
    reader = MetricReader(tmp_path, speaks=True)
    assert [*steps(reader), *steps(reader), *steps(reader)] == [5]


def test_metric_flood_is_read_from_newest_piece(tmp_path: Path) -> None:
    line = json.dumps(loss(7)).encode() + b"\n"
    (tmp_path / records.METRICS).write_bytes(line * (metric_lines.BACKLOG // len(line) + 100))
    found = MetricReader(tmp_path, speaks=True).read()
    assert 0 < len(found) <= metric_lines.PIECE / len(line)


@given(st.binary(max_size=400))
def test_arbitrary_bytes_do_not_break_metric_reader(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    (folder / records.METRICS).write_bytes(data)
    MetricReader(folder, speaks=True).read()


def test_agent_resends_undelivered_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "EXCHANGE", tmp_path)
    monkeypatch.setattr(shipping, "FOLDER", tmp_path)
    link = _Link()
    shipper = shipping.Shipper(link, str(tmp_path / "none"))  # type: ignore[arg-type]
    append(tmp_path, loss(1))
    link.away = True
    shipper.step()
    append(tmp_path, *(loss(step) for step in range(2, 2 + shipping.VALUES)))
    link.away = False
    shipper.finish(0.0)
    sent = [value for path, body in link.sent if path == "metrics" for value in body["values"]]
    assert [value[3] for value in sent] == list(range(1, 2 + shipping.VALUES))
    assert sent[0] == ["loss", 1.0, 101.0, 1]


def test_agent_sends_bounded_number_of_pieces_per_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "EXCHANGE", tmp_path)
    monkeypatch.setattr(shipping, "FOLDER", tmp_path)
    link, most = _Link(), shipping.PIECES * metric_lines.VALUES
    shipper = shipping.Shipper(link, str(tmp_path / "none"))  # type: ignore[arg-type]
    append(tmp_path, *(loss(step) for step in range(2 * most + 7)))
    shipper.step()
    assert sum(len(body["values"]) for _, body in link.sent) == most
    shipper.finish(0.0)
    assert sum(len(body["values"]) for _, body in link.sent) == 2 * most + 7


class _Link:
    """Link to a scheduler that may be unreachable."""

    def __init__(self) -> None:
        self.away = False
        self.sent: list[tuple[str, dict[str, list[list[object]]]]] = []

    def post(self, path: str, data: bytes, *, patience_s: float = 0.0) -> bytes:
        if self.away:
            raise LinkAway("away")
        self.sent.append((path, json.loads(data)))
        return b"{}"
