"""The checkpoint calls of ``libcuda.so.1`` through ctypes.

Source of names, numbers and layouts: CUDA Driver API reference 12.8 to 13.4, "CUDA Checkpointing"
and "Data types used by CUDA driver". All argument structures have 64 bytes, and their unnamed bytes
must be zero. Only ``libcuda_process`` imports this module, so that a hanging call blocks no other
process.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Mapping

LIBRARY = "libcuda.so.1"
ARGUMENT_BYTES = 64
STATES = ("running", "locked", "checkpointed", "failed", "changing", "changing")
"""``CUprocessState`` by its number; the last two stand for a call in progress (13.4)."""

CALLS = (
    *("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuCheckpointProcessGetState"),
    *("cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint"),
    *("cuCheckpointProcessRestore", "cuCheckpointProcessUnlock"),
)


class CudaError(Exception):
    """A call was rejected: its name, the driver's code and the driver's name of the code."""

    def __init__(self, call: str, code: int | None, name: str) -> None:
        super().__init__(f"{call}: {name}")
        self.call, self.code, self.name = call, code, name


class LockArgs(ctypes.Structure):
    """``CUcheckpointLockArgs``."""

    _fields_ = (
        ("timeoutMs", ctypes.c_uint),
        ("reserved0", ctypes.c_uint),
        ("reserved1", ctypes.c_uint64 * 7),
    )


class GpuPair(ctypes.Structure):
    """``CUcheckpointGpuPair``."""

    _fields_ = (("oldUuid", ctypes.c_ubyte * 16), ("newUuid", ctypes.c_ubyte * 16))


class RestoreArgs(ctypes.Structure):
    """``CUcheckpointRestoreArgs``; the fields after the count are zero."""

    _fields_ = (
        ("gpuPairs", ctypes.POINTER(GpuPair)),
        ("gpuPairsCount", ctypes.c_uint),
        ("reserved", ctypes.c_ubyte * (ARGUMENT_BYTES - ctypes.sizeof(ctypes.c_void_p) - 4)),
    )


class Libcuda:
    """The initialised library. Raises CudaError if it is missing, too old or has no GPU."""

    def __init__(self, name: str = LIBRARY) -> None:
        try:
            self._library = ctypes.CDLL(name)
        except OSError as error:
            raise CudaError("dlopen", None, f"{name} cannot be loaded ({error})") from error
        missing = [call for call in CALLS if not hasattr(self._library, call)]
        if missing:
            raise CudaError("dlsym", None, f"{name} has no {', '.join(missing)}")
        self._call("cuInit", 0)

    def version(self) -> int:
        """Return the CUDA version of the driver, such as 13000."""
        found = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(found))
        return found.value

    def state(self, pid: int) -> str:
        """Return the state of a process, a word of ``STATES``."""
        found = ctypes.c_uint()
        self._call("cuCheckpointProcessGetState", ctypes.c_int(pid), ctypes.byref(found))
        if found.value >= len(STATES):
            raise CudaError("cuCheckpointProcessGetState", None, f"unknown state {found.value}")
        return STATES[found.value]

    def lock(self, pid: int, timeout_ms: int) -> None:
        """Lock a running process."""
        self._call("cuCheckpointProcessLock", ctypes.c_int(pid), ctypes.byref(LockArgs(timeout_ms)))

    def checkpoint(self, pid: int) -> None:
        """Checkpoint a locked process."""
        self._call("cuCheckpointProcessCheckpoint", ctypes.c_int(pid), None)

    def restore(self, pid: int, gpus: Mapping[str, str]) -> None:
        """Restore a checkpointed process, onto other GPUs if ``gpus`` names any."""
        self._call("cuCheckpointProcessRestore", ctypes.c_int(pid), _restore_args(gpus))

    def unlock(self, pid: int) -> None:
        """Unlock a locked process."""
        self._call("cuCheckpointProcessUnlock", ctypes.c_int(pid), None)

    def _call(self, call: str, *arguments: object) -> None:
        code = getattr(self._library, call)(*arguments)
        if code:
            raise CudaError(call, code, self._name(code))

    def _name(self, code: int) -> str:
        found = ctypes.c_char_p()
        refused = self._library.cuGetErrorName(ctypes.c_int(code), ctypes.byref(found))
        return "an error without a name" if refused or not found.value else found.value.decode()


def uuid_bytes(gpu: str) -> bytes:
    """Return the 16 bytes of a GPU's UUID in NVML's notation.

    >>> uuid_bytes("GPU-00010203-0405-0607-0809-0a0b0c0d0e0f").hex()
    '000102030405060708090a0b0c0d0e0f'
    """
    return uuid.UUID(gpu.removeprefix("GPU-")).bytes


def _restore_args(gpus: Mapping[str, str]) -> object:
    if not gpus:
        return None
    pairs = (GpuPair * len(gpus))(
        *(
            GpuPair(
                (ctypes.c_ubyte * 16)(*uuid_bytes(old)), (ctypes.c_ubyte * 16)(*uuid_bytes(new))
            )
            for old, new in gpus.items()
        )
    )
    return ctypes.byref(RestoreArgs(pairs, len(gpus)))
