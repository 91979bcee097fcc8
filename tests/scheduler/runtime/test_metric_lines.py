"""What a worker appends step by step is read as it grows, whatever it writes."""

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


def say(folder: Path, *lines: object) -> None:
    with (folder / records.METRICS).open("a") as file:
        file.writelines(it if isinstance(it, str) else json.dumps(it) + "\n" for it in lines)


def loss(step: int, value: float | None = 1.0) -> dict[str, object]:
    return {"at": 100.0 + step, "step": step, "values": {"loss": value}}


def steps(reader: MetricReader) -> list[int | None]:
    return [it.step for it in reader.read()]


def test_lines_are_read_once_as_they_come_and_half_a_line_later(tmp_path: Path) -> None:
    reader = MetricReader(tmp_path, speaks=True)
    assert reader.read() == []
    say(tmp_path, loss(1), '{"at": 102, "step": 2, "val')
    assert reader.read() == [ReportedValue("loss", 1.0, 101.0, 1)]
    say(tmp_path, 'ues": {"loss": 0.5}}\n')
    assert reader.read() == [ReportedValue("loss", 0.5, 102.0, 2)]
    assert reader.read() == []


def test_a_file_that_was_begun_anew_is_followed_and_none_of_the_one_before_is_lost(
    tmp_path: Path,
) -> None:
    reader, current = MetricReader(tmp_path, speaks=True), tmp_path / records.METRICS
    say(tmp_path, loss(1))
    assert steps(reader) == [1]
    say(tmp_path, loss(2))
    os.replace(current, tmp_path / records.METRICS_BEFORE)
    assert steps(reader) == [2]
    assert steps(reader) == []
    say(tmp_path, loss(3))
    assert steps(reader) == [3]
    assert steps(MetricReader(tmp_path, speaks=True)) == [1, 2], "who begins reads all of it"


def test_metrics_of_the_progress_file_count_without_a_step(tmp_path: Path) -> None:
    (tmp_path / records.PROGRESS).write_text('{"fraction": 0.1, "metrics": {"loss": 2}}')
    (found,) = MetricReader(tmp_path, speaks=True).read()
    assert (found.name, found.value, found.step) == ("loss", 2.0, None)
    assert MetricReader(tmp_path, speaks=False).read() == []


def test_what_is_no_number_is_nothing_and_nonsense_is_left_out(tmp_path: Path) -> None:
    say(tmp_path, '{"at": 1, "step": 1, "values": {"loss": NaN, "b": "x", "c": true}}\n')
    say(tmp_path, "[1]\n", '{"at": 1, "step": -1, "values": {"a": 1}}\n', "{" * 5000 + "\n")
    say(tmp_path, {"at": 1, "step": 1.5, "values": {"a": 1}}, {"at": None, "values": {"a": 1}})
    found = MetricReader(tmp_path, speaks=True).read()
    assert found == [ReportedValue("loss", None, 1.0, 1)]


def test_a_link_or_a_pipe_in_its_place_is_not_read(tmp_path: Path) -> None:
    os.symlink("/etc/passwd", tmp_path / records.METRICS)
    assert MetricReader(tmp_path, speaks=True).read() == []
    (tmp_path / records.METRICS).unlink()
    os.mkfifo(tmp_path / records.METRICS)
    assert MetricReader(tmp_path, speaks=True).read() == []


def test_many_values_are_read_in_several_looks_and_none_is_lost(tmp_path: Path) -> None:
    say(tmp_path, *(loss(step) for step in range(3 * metric_lines.VALUES + 7)))
    reader, looks = MetricReader(tmp_path, speaks=True), list[list[int | None]]()
    while found := steps(reader):
        looks.append(found)
    assert [len(look) for look in looks] == [metric_lines.VALUES] * 3 + [7]
    assert [step for look in looks for step in look] == list(range(3 * metric_lines.VALUES + 7))


def test_a_line_without_end_does_not_hold_up_what_follows(tmp_path: Path) -> None:
    (tmp_path / records.METRICS).write_bytes(b"x" * (metric_lines.PIECE + 10) + b"\r\n")
    say(tmp_path, loss(5))
    reader = MetricReader(tmp_path, speaks=True)
    assert [*steps(reader), *steps(reader), *steps(reader)] == [5]


def test_who_floods_is_read_from_its_newest_piece(tmp_path: Path) -> None:
    line = json.dumps(loss(7)).encode() + b"\n"
    (tmp_path / records.METRICS).write_bytes(line * (metric_lines.BEHIND // len(line) + 100))
    found = MetricReader(tmp_path, speaks=True).read()
    assert 0 < len(found) <= metric_lines.PIECE / len(line)


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("exchange")
    (folder / records.METRICS).write_bytes(data)
    MetricReader(folder, speaks=True).read()


def test_the_agent_of_a_pod_sends_values_again_that_did_not_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shipping, "EXCHANGE", tmp_path)
    monkeypatch.setattr(shipping, "FOLDER", tmp_path)
    link = _Link()
    shipper = shipping.Shipper(link, str(tmp_path / "none"))  # type: ignore[arg-type]
    say(tmp_path, loss(1))
    link.away = True
    shipper.step()
    say(tmp_path, *(loss(step) for step in range(2, 2 + shipping.VALUES)))
    link.away = False
    shipper.finish(0.0)
    sent = [value for path, body in link.sent if path == "metrics" for value in body["values"]]
    assert [value[3] for value in sent] == list(range(1, 2 + shipping.VALUES))
    assert sent[0] == ["loss", 1.0, 101.0, 1]


class _Link:
    """A scheduler that may be away."""

    def __init__(self) -> None:
        self.away = False
        self.sent: list[tuple[str, dict[str, list[list[object]]]]] = []

    def post(self, path: str, data: bytes, *, patience_s: float = 0.0) -> bytes:
        if self.away:
            raise LinkAway("away")
        self.sent.append((path, json.loads(data)))
        return b"{}"
