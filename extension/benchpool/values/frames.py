"""Frames, series and indexes of pandas, and tables of Arrow, as Arrow files.

An Arrow file has the columns by number. Index and labels are separate values. So are columns of
objects, which Arrow would convert, and categories, which it drops if there are no rows.
"""

from __future__ import annotations

from typing import Any

from benchpool.values.libraries import is_one_of, library
from benchpool.values.untravelled import kind_of

NEEDS_ARROW = ("table", "index")
"""Formats that write Arrow files for values of other libraries."""


def needs_arrow(value: Any) -> str:
    """Return the message for a missing pyarrow."""
    return f"a {kind_of(value)}, which is sent as an Arrow file: install pyarrow with pandas"


def _columns(frame: Any, value: Any, writer: Any) -> dict[str, Any]:
    """Write the columns of a frame, independent of its column and row labels."""
    apart = _columns_apart(frame)
    plain = frame.iloc[:, [at for at in range(len(frame.columns)) if at not in apart]]
    plain = plain.set_axis([str(at) for at in range(len(plain.columns))], axis=1)
    node = {"file": _file(plain.reset_index(drop=True), value, writer), "rows": len(frame)}
    columns = [(at, _content(frame.iloc[:, at])) for at in apart]
    node["apart"] = [[at, writer.encode(each, f".iloc[:, {at}]")] for at, each in columns]
    return node


def _columns_apart(frame: Any) -> list[int]:
    infer = library("pandas").api.types.infer_dtype
    kinds = [str(each) for each in frame.dtypes]
    objects = [at for at, kind in enumerate(kinds) if kind == "object"]
    apart = {at for at in objects if infer(frame.iloc[:, at], skipna=False) != "string"}
    return sorted(apart | {at for at, kind in enumerate(kinds) if kind == "category"})


def _content(column: Any) -> Any:
    return column.array if str(column.dtype) == "category" else column.to_numpy()


def _file(frame: Any, value: Any, writer: Any) -> str:
    try:
        import pyarrow
        import pyarrow.feather
    except ImportError:
        raise writer.cannot(needs_arrow(value)) from None
    try:
        table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    except (pyarrow.ArrowException, TypeError, ValueError) as bad:
        why = str(bad).partition("\n")[0][:100]
        raise writer.cannot(f"a {kind_of(value)} that Arrow cannot store: {why}") from bad
    writer.count(table.nbytes)
    path = writer.file("arrow")
    pyarrow.feather.write_feather(table, str(path), compression="uncompressed")
    if not _frame_of(path).dtypes.equals(frame.dtypes):
        raise writer.cannot(f"a {kind_of(value)} that an Arrow file does not restore exactly")
    return str(path.name)


def _frame_of(path: Any) -> Any:
    import pyarrow.feather

    return pyarrow.feather.read_table(str(path)).to_pandas()


def _read_columns(node: dict[str, Any], reader: Any) -> Any:
    import pandas

    frame = _frame_of(reader.path(node["file"]))
    if not len(frame.columns):
        frame = pandas.DataFrame(index=pandas.RangeIndex(node["rows"]))
    for at, content in node["apart"]:
        column = reader.value(content)
        dtype = getattr(column, "dtype", object)
        frame.insert(at, f"apart {at}", pandas.Series(column, dtype=dtype))
    return frame


# ------------------------------------------------------------------ frames and series


def _is_table(value: Any, _writer: Any) -> bool:
    return is_one_of(value, "pandas", "DataFrame", "Series")


def _write_table(value: Any, writer: Any) -> dict[str, Any]:
    is_series = type(value).__name__ == "Series"
    frame = value.to_frame(name="values") if is_series else value
    node = {"index": writer.encode(value.index, ".index"), **_columns(frame, value, writer)}
    if is_series:
        return {**node, "name": writer.encode(value.name, ".name")}
    attributes = writer.encode(value.attrs, ".attrs") if value.attrs else None
    columns = writer.encode(value.columns, ".columns")
    return {**node, "columns": columns, "attrs": attributes}


def _read_table(node: dict[str, Any], reader: Any) -> Any:
    frame = _read_columns(node, reader)
    frame.index = reader.value(node["index"])
    if "name" in node:
        return frame.iloc[:, 0].rename(reader.value(node["name"]))
    frame.columns = reader.value(node["columns"])
    frame.attrs = reader.value(node["attrs"]) or {}
    return frame


# ------------------------------------------------------------------ indexes

_INDEXES = ("Index", "DatetimeIndex", "TimedeltaIndex", "PeriodIndex", "IntervalIndex")


def _is_index(value: Any, _writer: Any) -> bool:
    names = (*_INDEXES, "RangeIndex", "MultiIndex", "CategoricalIndex", "Categorical")
    return is_one_of(value, "pandas", *names)


def _write_index(value: Any, writer: Any) -> dict[str, Any]:
    kind = type(value).__name__
    if kind == "RangeIndex":
        steps = [value.start, value.stop, value.step]
        return {"class": kind, "steps": steps, "name": writer.encode(value.name, ".name")}
    if kind == "MultiIndex":
        levels = [writer.encode(each, f".levels[{at}]") for at, each in enumerate(value.levels)]
        codes = [writer.encode(each) for each in value.codes]
        names = writer.encode(list(value.names), ".names")
        return {"class": kind, "levels": levels, "codes": codes, "names": names}
    if kind == "Categorical":
        categories = writer.encode(value.categories, ".categories")
        codes = writer.encode(value.codes.copy())
        return {"class": kind, "codes": codes, "categories": categories, "ordered": value.ordered}
    frame = library("pandas").Series(value.array).to_frame(name="values")
    name, freq = writer.encode(value.name, ".name"), getattr(value, "freqstr", None)
    return {"class": kind, "name": name, "freq": freq, **_columns(frame, value, writer)}


def _read_index(node: dict[str, Any], reader: Any) -> Any:
    import pandas

    if node["class"] == "RangeIndex":
        return pandas.RangeIndex(*node["steps"], name=reader.value(node["name"]))
    if node["class"] == "MultiIndex":
        levels, codes = ([reader.value(each) for each in node[key]] for key in ("levels", "codes"))
        names = reader.value(node["names"])
        return pandas.MultiIndex(levels, codes, names=names, verify_integrity=False)
    if node["class"] == "Categorical":
        codes, categories = reader.value(node["codes"]), reader.value(node["categories"])
        return pandas.Categorical.from_codes(codes, categories, node["ordered"])
    column = _read_columns(node, reader).iloc[:, 0]
    made = pandas.Index(column.array, dtype=column.dtype, name=reader.value(node["name"]))
    if node["freq"] and node["class"] != "PeriodIndex":
        made.freq = node["freq"]
    return made


# ------------------------------------------------------------------ others


def _is_arrow(value: Any, _writer: Any) -> bool:
    return is_one_of(value, "pyarrow", "Table")


def _write_arrow(value: Any, writer: Any) -> dict[str, Any]:
    import pyarrow.feather

    writer.count(value.nbytes)
    path = writer.file("arrow")
    pyarrow.feather.write_feather(value, str(path), compression="uncompressed")
    return {"file": path.name}


def _read_arrow(node: dict[str, Any], reader: Any) -> Any:
    import pyarrow.feather

    return pyarrow.feather.read_table(str(reader.path(node["file"])))


def _is_moment(value: Any, _writer: Any) -> bool:
    return is_one_of(value, "pandas", "Timestamp", "Timedelta")


def _write_moment(value: Any, _writer: Any) -> dict[str, Any]:
    zone = None if getattr(value, "tz", None) is None else str(value.tz)
    return {"class": type(value).__name__, "value": value.isoformat(), "zone": zone}


def _read_moment(node: dict[str, Any], _reader: Any) -> Any:
    import pandas

    if node["class"] == "Timedelta":
        return pandas.Timedelta(node["value"])
    moment = pandas.Timestamp(node["value"])
    return moment if node["zone"] is None else moment.tz_convert(node["zone"])


FRAME_FORMATS = (
    ("table", _is_table, _write_table, _read_table),
    ("index", _is_index, _write_index, _read_index),
    ("moment", _is_moment, _write_moment, _read_moment),
    ("arrow", _is_arrow, _write_arrow, _read_arrow),
)
"""Fields of ``formats.Format``."""
