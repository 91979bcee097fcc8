"""A small CUDA process for the trial: 64 MiB of GPU memory with a pattern in it.

It prints ``ready``. It answers each line of input with ``intact``, or with ``changed`` if the
pattern differs. It uses the driver's library only, so that no CUDA toolkit is needed.
"""

from __future__ import annotations

import ctypes
import sys

SIZE = 64 * 2**20
_SEED = bytes(range(256))


class Canary:
    """The memory and its pattern. Raises RuntimeError with name and code of a failed call."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._pattern = _SEED * (SIZE // len(_SEED))
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._memory = ctypes.c_uint64()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuMemAlloc_v2", ctypes.byref(self._memory), ctypes.c_size_t(SIZE))
        self._call("cuMemcpyHtoD_v2", self._memory, self._pattern, ctypes.c_size_t(SIZE))

    def is_intact(self) -> bool:
        """Return whether the memory still holds the pattern."""
        found = ctypes.create_string_buffer(SIZE)
        self._call("cuMemcpyDtoH_v2", found, self._memory, ctypes.c_size_t(SIZE))
        return found.raw == self._pattern

    def _call(self, call: str, *arguments: object) -> None:
        code = getattr(self._library, call)(*arguments)
        if code:
            raise RuntimeError(f"{call}: error {code}")


def main() -> None:
    """Hold the memory, and answer until the input ends."""
    canary = Canary(ctypes.CDLL("libcuda.so.1"))
    print("ready", flush=True)
    for _ in sys.stdin:
        print("intact" if canary.is_intact() else "changed", flush=True)


if __name__ == "__main__":
    main()
