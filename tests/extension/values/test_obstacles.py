"""What the dialog says cannot go along is what sending refuses, in the same words."""

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
    """What a notebook defines."""

    def __init__(self, **parts: object) -> None:
        self.__dict__.update(parts)


def both(tmp_path: Path, value: Any, *, pickle: bool) -> tuple[str | None, str | None]:
    """Return what a look says of a value, and what sending says."""
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
def test_a_look_says_what_sending_says(tmp_path: Path, value: Any, pickle: bool) -> None:
    if pickle and importlib.util.find_spec("cloudpickle") is None:
        pytest.skip("pickles need cloudpickle")
    looked, sent = both(tmp_path, value, pickle=pickle)
    assert looked == sent


def test_a_lock_deep_inside_is_named_at_once_although_pickles_are_not_allowed(
    tmp_path: Path,
) -> None:
    looked, _ = both(tmp_path, Trainer(parts=[threading.Lock()]), pickle=False)
    assert looked == "looked_at.parts[0] is a lock"


def test_arrays_and_frames_go_along_where_their_format_is_there(
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
