"""Cause of a program's failure, and fingerprint of its traceback, from its last output: pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from . import failure

LAST = 40
"""Number of last lines of a log in which a GPU error counts; the program survived earlier ones."""

GPU_ERROR, OUT_OF_GPU_MEMORY = "gpu-error", "out-of-gpu-memory"
"""Words of ``contract.causes``."""

_OUT_OF_GPU_MEMORY = re.compile(
    r"CUDA out of memory|HIP out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation"
    r"|CUDA error: out of memory|C(?:UBLAS|UDNN)_STATUS_ALLOC_FAILED"
    r"|RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate)|OutOfMemoryError: .*GPU"
)
_GPU_ERROR = re.compile(
    r"CUDA_ERROR_(?:ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE|DEVICE_UNAVAILABLE|NO_DEVICE"
    r"|HARDWARE_STACK_ERROR|SYSTEM_NOT_READY|CONTAINED|MPS_CONNECTION_FAILED)"
    r"|cudaError(?:ECCUncorrectable|NvlinkUncorrectable|DevicesUnavailable|NoDevice"
    r"|HardwareStackError|SystemNotReady|Contained)"
    r"|uncorrectable (?:ECC|NVLink) error|CUDA-capable device\(s\) is/are busy or unavailable"
    r"|no CUDA-capable device is detected|hardware stack error|GPU is lost|NVML_ERROR_GPU_IS_LOST"
    r"|fallen off the bus|NVRM: Xid"
)
_FRAME = re.compile(r'\s*File "(.+)", line (\d+)(?:, in (.+))?')
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FOLDER = re.compile(r"(?:/[^\s/:'\"]+)+/")


def found(code: int | None, by: str, tail: bytes) -> dict[str, object]:
    """Return the cause and the traceback fingerprint for the record of an end."""
    if code is None:
        return {}
    return {"cause": cause(code, by, tail), "traceback": traceback(code, by, tail)}


def cause(code: int, by: str, tail: bytes) -> str | None:
    """Return the cause of a failure beyond its exit code, or None if unknown.

    >>> cause(1, "itself", b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
    'out-of-gpu-memory'
    >>> cause(1, "itself", b"RuntimeError: CUDA error: uncorrectable ECC error encountered")
    'gpu-error'
    >>> cause(1, "itself", b"RuntimeError: CUDA error: an illegal memory access was encountered")
    >>> cause(0, "itself", b"CUDA out of memory")
    """
    if code == 0 or by != "itself":
        return None
    last = "\n".join(failure.lines(tail)[-LAST:])
    if _OUT_OF_GPU_MEMORY.search(last):
        return OUT_OF_GPU_MEMORY
    return GPU_ERROR if _GPU_ERROR.search(last) else None


def traceback(code: int, by: str, tail: bytes) -> str | None:
    r"""Return a fingerprint of the traceback with which a program ended, or None.

    Tracebacks are equal if they have the same exception in the same lines of the same functions.
    Numbers, addresses and folders in the text of the exception may differ.

    >>> log = b'''Traceback (most recent call last):
    ...   File "/jobs/%d/a.py", line 12, in fit
    ...     step()
    ... ValueError: %d of 10 at 0x7f%d'''
    >>> traceback(1, "itself", log % (1, 3, 4)) == traceback(1, "itself", log % (2, 5, 6))
    True
    >>> traceback(1, "itself", log.replace(b"12", b"13")) == traceback(1, "itself", log)
    False
    >>> traceback(3, "itself", b"bye") is None
    True
    """
    if code == 0 or by != "itself":
        return None
    lines = failure.lines(tail)
    description = failure.of_cell(lines)
    if description is not None:
        return _mark(
            [_plain(description)],
            [description.partition(" with ")[0], *failure.place(description).values()],
        )
    found = failure.last_traceback(lines)
    if found is None:
        return None
    frames = [match.groups() for match in map(_FRAME.match, found.frames) if match]
    places = [f"{file.rpartition('/')[2]}:{line}:{where}" for file, line, where in frames]
    return _mark([_plain(found.error)], places)


def _plain(text: str) -> str:
    """Return a text without the parts that differ from run to run.

    >>> _plain("OSError: /tmp/job-7/data.bin of 12.5 GiB at 0x7f00")
    'OSError: data.bin of # GiB at #'
    """
    return _NUMBER.sub("#", _FOLDER.sub("", _ADDRESS.sub("#", text)))


def _mark(words: list[str], places: Sequence[object]) -> str:
    whole = "\n".join(map(str, [*words, *places]))
    return hashlib.sha256(whole.encode(errors="replace")).hexdigest()[:16]
