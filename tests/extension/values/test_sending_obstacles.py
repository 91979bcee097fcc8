"""The dialog reports the same obstacles as sending, in the same words."""

from __future__ import annotations

import collections
import importlib.util
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from benchpool.values import obstacles, sending

MOST = 1 << 30


class Trainer:
    """Class of a notebook."""

    def __init__(self, **parts: object) -> None:
        self.__dict__.update(parts)


def both(tmp_path: Path, value: Any, *, pickle: bool) -> tuple[str | None, str | None]:
    """Return the obstacle of a value as the dialog and as sending report it."""
    names = sys.modules["__main__"].__dict__
    names["looked_at"] = value
    try:
        looked = json.loads(obstacles.of(["looked_at"], pickle))
        sent = json.loads(sending.write(["looked_at"], str(tmp_path), pickle, MOST))["left_out"]
    finally:
        del names["looked_at"]
    return looked.get("looked_at"), sent.get("looked_at")


@pytest.mark.parametrize(
    "value",
    [
        [1, "two", {"three": (4.0, None)}, {5}, b"6", range(7), 1 << 80],
        {"deep": [collections.deque([collections.Counter("abc")])]},
        {"log": [threading.Lock()]},
        [Trainer(score=0.9)],
        Trainer(parts={"lock": threading.Lock()}),
        iter(lambda: 1, 1),
        (number for number in range(3)),
        [print],
        open(__file__),  # noqa: SIM115 (it is the value)
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("pickle", [False, True])
def test_obstacle_check_agrees_with_sending(tmp_path: Path, value: Any, pickle: bool) -> None:
    if pickle and importlib.util.find_spec("cloudpickle") is None:
        pytest.skip("pickles need cloudpickle")
    looked, sent = both(tmp_path, value, pickle=pickle)
    assert looked == sent


def test_nested_lock_is_named_even_without_pickles(
    tmp_path: Path,
) -> None:
    looked, _ = both(tmp_path, Trainer(parts=[threading.Lock()]), pickle=False)
    assert looked == "looked_at.parts[0] is a lock"


def test_arrays_and_frames_are_sendable_with_their_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    value = {"x": numpy.zeros(3), "frame": pandas.DataFrame({"a": [1]})}
    assert both(tmp_path, value, pickle=False) == (None, None)
    monkeypatch.setattr(obstacles, "find_spec", lambda name: None)
    found = obstacles.first("data", value)
    assert found is not None
    assert found[0] == "data['frame']"
    assert "install pyarrow" in found[1]
