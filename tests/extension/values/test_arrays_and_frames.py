"""Arrays, frames and tensors are restored with their dtypes, indexes and sharing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool.values.reading import StoredValues
from benchpool.values.writing import DocumentWriter

numpy = pytest.importorskip("numpy")


def round_trip(folder: Path, *, states: bool = False, **values: Any) -> StoredValues:
    folder.mkdir(exist_ok=True)
    writer = DocumentWriter(folder, states=states)
    for name, value in values.items():
        writer.add(name, value)
    assert writer.finish()["left_out"] == {}
    return StoredValues(folder, pickles=False)


DTYPES = [*"?bBhHiIlLefdFD", "U3", "S3", "M8[ns]", "m8[D]", "M8[Y]", [("a", "<i4"), ("b", "f8", 2)]]


@given(dtype=st.sampled_from(DTYPES), shape=st.lists(st.integers(0, 3), max_size=3))
def test_arrays_keep_dtype_and_shape(
    tmp_path_factory: pytest.TempPathFactory, dtype: Any, shape: list[int]
) -> None:
    array = numpy.zeros(shape, dtype)
    back = round_trip(tmp_path_factory.mktemp("values"), array=array)["array"]
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    assert back.tobytes() == array.tobytes()


def test_scalars_masked_and_object_arrays_keep_kind(tmp_path: Path) -> None:
    shared = [1]
    values = {
        "half": numpy.float16(1.5),
        "day": numpy.datetime64("2026-01-02"),
        "record": numpy.array((1, 2.0), [("a", "i4"), ("b", "f8")])[()],
        "masked": numpy.ma.masked_array([1, 2], [False, True], fill_value=9),
        "objects": numpy.array([[1, "a"], [None, shared]], dtype=object),
        "by_columns": numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
    }
    back = round_trip(tmp_path, shared=shared, **values)
    for name in ("half", "day", "record"):
        assert (back[name], back[name].dtype) == (values[name], values[name].dtype)
    assert back["masked"].filled().tolist() == [1, 9]
    assert back["objects"].tolist() == values["objects"].tolist()
    assert back["objects"][1, 1] is back["shared"]
    assert back["by_columns"].flags.f_contiguous


def test_sparse_matrices_are_restored(tmp_path: Path) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.random(20, 30, density=0.1, format="csr", rng=1)
    assert (round_trip(tmp_path, m=matrix)["m"] != matrix).nnz == 0


def frames(pandas: Any) -> dict[str, Any]:
    """Return frames with columns and indexes of many kinds."""
    days = pandas.date_range("2026-01-01", periods=3, freq="D", tz="Europe/Paris")
    columns = {
        "whole": pandas.array([1, None, 3], dtype="Int64"),
        "word": ["a", None, "c"],
        "kind": pandas.Categorical(["x", "y", "x"], categories=["y", "x"], ordered=True),
        "when": days,
        "part": [0.5, float("nan"), 2.0],
        "span": pandas.to_timedelta([1, 2, 3], unit="s"),
    }
    plain = pandas.DataFrame(columns)
    return {
        "plain": plain,
        "by_day": plain.set_index(days),
        "by_two": plain.set_index(["kind", "whole"]),
        "by_kind": plain.set_index("kind"),
        "from_ten": plain.set_index(pandas.RangeIndex(10, 16, 2, name="row")),
        "numbered": pandas.DataFrame(numpy.eye(3)),
        "two_levels": pandas.DataFrame([[1, 2]], columns=[["a", "a"], ["b", "c"]]),
        "empty": plain.iloc[:0],
        "lists": pandas.DataFrame({"n": [1, 2], "tokens": [["a"], ["b", "c"]], "z": [3, 4]}),
        "mixed": pandas.DataFrame({"m": [1, "x", None]}, index=["a", 2, ("b", 3)]),
        "twice": pandas.DataFrame([[1, "x"]], columns=["a", "a"]),
        "no_columns": pandas.DataFrame(index=[3, 1]),
    }


@pytest.mark.parametrize("name", [
    "plain", "by_day", "by_two", "by_kind", "from_ten", "numbered", "two_levels", "empty", "lists",
    "mixed", "twice", "no_columns",
])  # fmt: skip
def test_frames_keep_dtypes_categories_and_index(tmp_path: Path, name: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = frames(pandas)[name]
    back = round_trip(tmp_path, frame=frame)["frame"]
    pandas.testing.assert_frame_equal(back, frame, check_freq=True)


def test_series_indexes_and_timestamps_keep_name_and_frequency(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    days = pandas.date_range("2026-01-01", periods=3, freq="D", name="day")
    values = {
        "series": pandas.Series([1.5, 2, 3], index=days, name=("a", 1)),
        "days": days,
        "pairs": pandas.MultiIndex.from_product([["a", "b"], [1, 2]], names=["x", "y"]),
        "kinds": pandas.Categorical(["u", "v", "u"]),
        "moment": pandas.Timestamp("2026-07-01 12:00", tz="Europe/Paris"),
        "span": pandas.Timedelta("3D 2ns"),
    }
    back = round_trip(tmp_path, **values)
    pandas.testing.assert_series_equal(back["series"], values["series"])
    pandas.testing.assert_index_equal(back["days"], days)
    assert back["days"].freq == days.freq
    pandas.testing.assert_index_equal(back["pairs"], values["pairs"])
    assert back["kinds"].equals(values["kinds"])
    assert (back["moment"], str(back["moment"].tz)) == (values["moment"], "Europe/Paris")
    assert back["span"] == values["span"]


def test_frame_without_arrow_names_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    writer = DocumentWriter(tmp_path)
    writer.add("rows", [pandas.DataFrame({"a": [1]})])
    assert "install pyarrow with pandas" in writer.finish()["left_out"]["rows"]


@pytest.mark.parametrize("safetensors", [True, False], ids=["safetensors", "arrays"])
def test_tensors_keep_dtype_gradient_and_sharing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safetensors: bool
) -> None:
    torch = pytest.importorskip("torch")
    if safetensors:
        pytest.importorskip("safetensors")
    else:
        monkeypatch.setitem(sys.modules, "safetensors", None)
        monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    kinds = ["bool", "uint8", "int64", "float16", "bfloat16", "float64", "complex64"]
    values = {name: torch.ones(2, 3).to(getattr(torch, name)) for name in kinds}
    wide = torch.arange(10.0)
    values |= {"wide": wide, "part": wide[2:4], "turned": torch.arange(6).reshape(2, 3).T}
    values |= {"zero": torch.tensor(3), "none": torch.empty(0, 2)}
    weight = torch.nn.Parameter(torch.ones(2))
    back = round_trip(tmp_path, **values, weight=weight, pair={"a": [weight, wide]})
    for name, value in values.items():
        assert back[name].dtype == value.dtype
        assert torch.equal(back[name], value), name
    assert back["pair"]["a"][0] is back["weight"]
    assert back["pair"]["a"][1] is back["wide"]
    assert isinstance(back["weight"], torch.nn.Parameter)
    assert back["weight"].requires_grad


def test_model_and_optimizer_states_are_restored(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.ModuleDict({"a": torch.nn.Linear(2, 2), "b": torch.nn.Linear(2, 2)})
    model["b"].weight = model["a"].weight
    optimizer = torch.optim.Adam(model.parameters())
    model["b"](torch.ones(1, 2)).sum().backward()
    optimizer.step()
    back = round_trip(tmp_path, states=True, model=model, optimizer=optimizer)
    assert back.entries["model"]["form"] == "state"
    tied = back["model"]
    assert tied["a.weight"].data_ptr() == tied["b.weight"].data_ptr(), "shared weights stay shared"
    model.load_state_dict(tied)
    optimizer.load_state_dict(back["optimizer"])
