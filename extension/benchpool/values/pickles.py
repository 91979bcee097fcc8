"""Pickles: written only if the user allowed it, and loaded only in that user's kernel or job."""

from __future__ import annotations

from typing import Any

from benchpool.values.libraries import library
from benchpool.values.untravelled import CannotTravel

NO_CLOUDPICKLE = "a value that needs a pickle, and this Python has no cloudpickle"


def dump(values: dict[str, Any], writer: Any) -> str:
    """Pickle values into one file and return its name. Raises CannotTravel."""
    try:
        import cloudpickle
    except ImportError:
        raise CannotTravel("", NO_CLOUDPICKLE) from None
    path = writer.file("pickle")
    torch = library("torch")
    try:
        with path.open("wb") as file:
            if torch is not None:  # so that tensors of a GPU can be read on a machine without one
                torch.save(values, file, pickle_module=cloudpickle)
            else:
                cloudpickle.dump(values, file)
        writer.count(path.stat().st_size)
    except CannotTravel:
        raise
    except Exception as bad:  # any error of a class's own code
        raise writer.cannot(f"a value that cannot be pickled: {type(bad).__name__}: {bad}") from bad
    return f"{path.name}"


def load(path: Any, device: Any) -> Any:
    """Return the unpickled values. This runs code of the pickle's author."""
    with path.open("rb") as file:
        is_zip = file.read(4) == b"PK\x03\x04"
        file.seek(0)
        if is_zip:
            import torch

            return torch.load(file, map_location=device, weights_only=False)
        import cloudpickle

        return cloudpickle.load(file)
