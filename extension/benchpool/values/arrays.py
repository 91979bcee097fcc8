"""NumPy arrays and numbers, and SciPy sparse matrices: ``.npy`` without pickle."""

from __future__ import annotations

import base64
from typing import Any

from benchpool.values.libraries import is_one_of, library


def _is_array(value: Any, _writer: Any) -> bool:
    return is_one_of(value, "numpy", "ndarray", "memmap") and value.dtype.isbuiltin != 2


def _write_array(value: Any, writer: Any) -> dict[str, Any]:
    numpy = library("numpy")
    if value.dtype.hasobject:
        if value.dtype != object:
            raise writer.cannot("an array of records with objects")
        items = [writer.encode(each, f"[{at}]") for at, each in enumerate(value.ravel().tolist())]
        return {"shape": list(value.shape), "items": items}
    writer.count(value.nbytes)
    path = writer.file("npy")
    numpy.save(path, value, allow_pickle=False)
    return {"file": path.name}


def _read_array(node: dict[str, Any], reader: Any) -> Any:
    import numpy

    if "file" in node:
        return numpy.load(reader.path(node["file"]), allow_pickle=False)
    made: Any = numpy.empty(len(node["items"]), dtype=object)
    for at, item in enumerate(node["items"]):
        made[at] = reader.value(item)
    return made.reshape(node["shape"])


def _is_number(value: Any, _writer: Any) -> bool:
    numpy = library("numpy")
    return (
        numpy is not None
        and isinstance(value, numpy.generic)
        and value.dtype.isbuiltin != 2
        and not value.dtype.hasobject
    )


def _write_number(value: Any, _writer: Any) -> dict[str, Any]:
    content = base64.b64encode(value.tobytes()).decode()
    # As in the header of .npy, with the unit of a date and the fields of a record.
    descr = library("numpy").lib.format.dtype_to_descr(value.dtype)
    return {"dtype": descr, "value": content}


def _dtype(descr: Any) -> Any:
    import numpy

    if isinstance(descr, str):
        return numpy.dtype(descr)
    fields = [(*map(str, each[:1]), _dtype(each[1]), *map(tuple, each[2:])) for each in descr]
    return numpy.dtype(fields)


def _read_number(node: dict[str, Any], _reader: Any) -> Any:
    import numpy

    return numpy.frombuffer(base64.b64decode(node["value"]), _dtype(node["dtype"]))[0]


def _is_masked(value: Any, _writer: Any) -> bool:
    return is_one_of(value, "numpy.ma", "MaskedArray")


def _write_masked(value: Any, writer: Any) -> dict[str, Any]:
    parts = {"data": value.data, "mask": value.mask, "fill": value.fill_value}
    return {name: writer.encode(part, f".{name}") for name, part in parts.items()}


def _read_masked(node: dict[str, Any], reader: Any) -> Any:
    import numpy

    data, mask = reader.value(node["data"]), reader.value(node["mask"])
    return numpy.ma.masked_array(data, mask, fill_value=reader.value(node["fill"]))


_SPARSE = tuple(f"{kind}_{word}" for kind in ("csr", "csc") for word in ("matrix", "array"))


def _is_sparse(value: Any, _writer: Any) -> bool:
    return is_one_of(value, "scipy.sparse", *_SPARSE)


def _write_sparse(value: Any, writer: Any) -> dict[str, Any]:
    parts = {name: writer.encode(getattr(value, name)) for name in ("data", "indices", "indptr")}
    return {"class": type(value).__name__, "shape": list(value.shape), **parts}


def _read_sparse(node: dict[str, Any], reader: Any) -> Any:
    import scipy.sparse

    if node["class"] not in _SPARSE:
        raise ValueError(node["class"])
    parts = [reader.value(node[name]) for name in ("data", "indices", "indptr")]
    return getattr(scipy.sparse, node["class"])(tuple(parts), shape=node["shape"])


ARRAY_FORMATS = (
    ("numpy", _is_array, _write_array, _read_array),
    ("number", _is_number, _write_number, _read_number),
    ("masked", _is_masked, _write_masked, _read_masked),
    ("sparse", _is_sparse, _write_sparse, _read_sparse),
)
"""Fields of ``formats.Format``."""
