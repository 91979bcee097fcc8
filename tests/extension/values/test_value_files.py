"""Values written to a folder and read again: plain data, arrays, frames, tensors, pickles."""

from __future__ import annotations

import argparse
import collections
import datetime
import decimal
import json
import math
import pathlib
import threading
import uuid
import zoneinfo
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool.values.reading import NotReadable, StoredValues
from benchpool.values.writing import CONTENTS, DOCUMENT, DocumentWriter


def written(folder: Path, values: dict[str, Any], **how: Any) -> dict[str, Any]:
    """Write values into a new folder and return the document."""
    folder.mkdir(exist_ok=True)
    writer = DocumentWriter(folder, **how)
    for name, value in values.items():
        writer.add(name, value)
    return writer.finish()


def round_trip(folder: Path, **values: Any) -> StoredValues:
    written(folder, values)
    return StoredValues(folder, pickles=False)


KEYS = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.tuples(st.integers()))
PLAIN = st.recursive(
    st.one_of(
        KEYS, st.floats(allow_nan=False), st.binary(), st.complex_numbers(allow_nan=False),
        st.decimals(allow_nan=False), st.fractions(), st.timedeltas(), st.dates(), st.uuids(),
    ),
    lambda inner: st.one_of(
        st.lists(inner), st.lists(inner).map(tuple), st.dictionaries(KEYS, inner),
        st.frozensets(KEYS), st.lists(inner).map(collections.deque),
    ),
    max_leaves=12,
)  # fmt: skip


@given(value=PLAIN)
def test_plain_values_keep_equality_and_type(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    back = round_trip(tmp_path_factory.mktemp("values"), value=value)["value"]
    assert back == value
    assert exact(back) == exact(value), "types too: 1 == 1.0 == True"


def exact(value: Any) -> Any:
    """Return a value with the type of each part; a set has no order."""
    if isinstance(value, dict):
        return [type(value), *[(exact(key), exact(each)) for key, each in value.items()]]
    if isinstance(value, (list, tuple, collections.deque)):
        return [type(value), *map(exact, value)]
    if isinstance(value, frozenset):
        return [type(value), *sorted(repr(exact(each)) for each in value)]
    return [type(value), repr(value)]


def test_similar_types_are_distinguished(tmp_path: Path) -> None:
    paris = datetime.datetime(2026, 3, 29, 2, 30, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"), fold=1)
    values = {
        "counter": collections.Counter("aab"),
        "default": collections.defaultdict(list, {"a": [1]}),
        "bounded": collections.deque([1, 2], maxlen=2),
        "ordered": collections.OrderedDict(a=1),
        "space": argparse.Namespace(lr=0.1, layers=[3]),
        "piece": slice(1, None, 2),
        "many": range(0, 10**30, 7),
        "large": 10**5000,
        "never": math.inf,
        "path": pathlib.Path("/data/x"),
        "exact": decimal.Decimal("0.10"),
        "mark": uuid.UUID(int=7),
        "local": paris,
    }
    back = round_trip(tmp_path, **values)
    assert dict(back) == values
    assert back["default"]["new"] == []
    assert back["bounded"].maxlen == 2
    assert back["local"].tzinfo == paris.tzinfo
    assert back["local"].fold == 1
    assert isinstance(back["path"], pathlib.PosixPath)
    assert math.isnan(round_trip(tmp_path / "nan", x=math.nan)["x"])


def test_shared_object_stays_shared_across_names(tmp_path: Path) -> None:
    shared: list[Any] = [1]
    shared.append(shared)
    back = round_trip(tmp_path, a=shared, b={"again": shared, "other": [1]})
    assert back["b"]["again"] is back["a"]
    assert back["a"][1] is back["a"], "it holds itself"
    assert back["b"]["other"] is not back["a"]


def test_unsendable_part_is_located_and_rest_is_written(tmp_path: Path) -> None:
    run = argparse.Namespace(log=[threading.Lock()])
    with (tmp_path / "file").open("w") as file:
        values = {
            "run": run, "rows": {"a": (each for each in "ab")}, "file": file, "f": print,
            "own": {"k": object()}, "good": [1],
        }  # fmt: skip
        document = written(tmp_path / "values", values)
    assert list(document["names"]) == ["good"]
    assert document["left_out"] == {
        "run": "run.log[0] is a lock",
        "rows": "rows['a'] is a generator, whose state cannot be saved",
        "file": "file is an open file",
        "f": "f is a function; code is sent as cells",
        "own": "own['k'] is an object of the type object, which has no safe format; allow "
        "pickles to send it",
    }
    assert len(document["nodes"]) == 1, "what was left out leaves nothing behind"


def test_too_large_value_is_omitted_with_sizes(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    tmp_path.mkdir(exist_ok=True)
    writer = DocumentWriter(tmp_path)
    writer.bound(3 << 20)
    writer.add("both", [numpy.zeros(1 << 20, "u1"), numpy.zeros(4 << 20, "u1")])
    writer.add("small", numpy.zeros(2 << 20, "u1"))
    document = writer.finish()
    assert document["left_out"] == {
        "both": "both[1] is too large: 4.0 MiB, with 2.0 MiB left of the limit"
    }
    assert list(document["names"]) == ["small"], "what was written of the first counts no more"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.npy", CONTENTS, DOCUMENT]


def test_pickles_are_written_and_read_only_when_allowed(
    tmp_path: Path,
) -> None:
    pytest.importorskip("cloudpickle")

    class Net:
        def __init__(self) -> None:
            self.weights = [1, 2]

    net = Net()
    values = {"net": net, "same": [net], "f": lambda: net.weights, "lock": [threading.Lock()]}
    document = written(tmp_path, {**values, "plain": 1}, pickle=True)
    assert document["left_out"] == {"lock": "lock[0] is a lock"}
    assert [each["form"] for each in document["names"].values()] == ["value", *["pickle"] * 3]
    with pytest.raises(NotReadable, match="user who sent the job can load it"):
        StoredValues(tmp_path, pickles=False)["net"]
    back = StoredValues(tmp_path, pickles=True)
    assert back["net"].weights == [1, 2]
    assert back["same"][0] is back["net"], "names that share go together"
    assert back["f"]() is back["net"].weights


def test_document_with_file_outside_folder_is_rejected(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    document = written(tmp_path, {"x": 1 + 2j})
    document["nodes"][0] = {"kind": "numpy", "file": "../../etc/passwd"}
    (tmp_path / DOCUMENT).write_text(json.dumps(document))
    with pytest.raises(NotReadable, match="which it cannot have"):
        StoredValues(tmp_path, pickles=False)["x"]
