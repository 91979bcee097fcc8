"""Progress bars in the log are the progress of a job that reports none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchpool_scheduler.worker.progress_bars import LASTS_S, ProgressBars, read
from benchpool_scheduler.worker.supervisor.bar_progress import EVERY_S, BarProgress


def line(done: int, every: int, name: str = "") -> bytes:
    """Return a bar as tqdm draws it."""
    percent = 100 * done // every
    label = f"{name}: " if name else ""
    drawn = "█" * (percent // 10)
    times = "[00:10<00:12, 4.50it/s]"
    return f"\r{label}{percent:3d}%|{drawn:10}| {done}/{every} {times}".encode()


def progress_in(folder: Path) -> tuple[float | None, str] | None:
    file = folder / "progress.json"
    if not file.exists():
        return None
    report = json.loads(file.read_text())
    return report["fraction"], report["text"]


def test_lasting_bar_sets_progress_and_full_bar_clears_it(tmp_path: Path) -> None:
    bars = BarProgress(str(tmp_path))
    bars.take(line(1, 100), 0.0, None)
    assert progress_in(tmp_path) == (None, "1/100")
    bars.take(line(45, 100), LASTS_S, None)
    assert progress_in(tmp_path) == (0.45, "45/100")
    bars.take(line(100, 100), LASTS_S + EVERY_S, None)
    assert progress_in(tmp_path) == (None, "100/100")


def test_progress_reported_by_program_is_not_overwritten(tmp_path: Path) -> None:
    bars = BarProgress(str(tmp_path))
    bars.take(line(1, 100), 0.0, None)
    (tmp_path / "progress.json").write_text(json.dumps({"fraction": 0.9, "text": "mine"}))
    bars.take(line(45, 100), 10.0, None)
    assert progress_in(tmp_path) == (0.9, "mine")


def test_bar_progress_is_written_once_per_second(tmp_path: Path) -> None:
    bars = BarProgress(str(tmp_path))
    for step in range(100):
        bars.take(line(step, 1000), 10.0 + step / 100, None)
    assert progress_in(tmp_path) == (None, "0/1000")


def test_unwritable_progress_file_is_ignored(tmp_path: Path) -> None:
    BarProgress(str(tmp_path / "gone")).take(line(1, 2), 0.0, None)


def test_outermost_of_nested_bars_counts() -> None:
    bars = ProgressBars()
    bars.take(line(0, 3, "epochs") + b"\n" + line(1, 50, "batches"), 0.0)
    bars.take(line(50, 50, "batches") + line(1, 3, "epochs"), 9.0)
    found = bars.take(line(10, 50, "batches"), 10.0)
    assert found is not None
    assert (found.text, found.fraction(10.0)) == ("epochs, 1/3", 1 / 3)


def test_consecutive_bars_give_fraction_only_with_known_count() -> None:
    bars = ProgressBars()
    bars.take(line(10, 10), 0.0)
    again = bars.take(line(5, 10), 10.0)
    assert again is not None
    assert (again.text, again.fraction(20.0)) == ("5/10", None)
    epoch = bars.take(line(500, 1000, "Epoch 3"), 30.0)
    assert epoch is not None
    assert epoch.fraction(40.0) is None
    progress = ProgressBars().take(line(500, 1000, "Epoch 3/10"), 0.0)
    assert progress is not None
    assert progress.fraction(LASTS_S) == 0.25


def test_bar_in_pieces_is_read_whole() -> None:
    bars, whole = ProgressBars(), line(45, 100, "Jürgen")
    found = [bars.take(bytes([each]), 0.0) for each in whole + b"\r"]
    assert [each.text for each in found if each is not None] == ["Jürgen, 45/100"]


@pytest.mark.parametrize(
    "text",
    [
        "loss 45%",
        "|####| 4/5",
        " 45%|####      | 45/0 [00:10<00:12]",
        "999%|",
        "45%|####|x/y [00:01<00:02]",
        "x" * 100_000,
        "1%|" * 50_000,
    ],
)
def test_text_without_bar_is_ignored(text: str) -> None:
    assert read(text) is None


def test_bar_after_unterminated_text_is_read() -> None:
    bars = ProgressBars()
    for _ in range(100):
        assert bars.take(b"x" * 65536, 0.0) is None
    found = bars.take(line(4, 5), 0.0)
    assert found is not None
    assert found.text == "4/5"
