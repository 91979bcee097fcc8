"""Sampler of this machine's GPUs through NVML: one round of calls for each GPU and tick.

Every call may fail: an old driver lacks functions, a model or a slice does not support some, a GPU
is lost during the call. A missing answer is None; sampling never raises. The list of GPUs comes
from ``runtime.local.gpus``.

Source of the calls and their units: NVIDIA's NVML API reference, "Device Queries".
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pynvml

from benchpool_scheduler.telemetry.nvml_activity import Utilisation
from benchpool_scheduler.telemetry.nvml_gpm import GpmReader
from benchpool_scheduler.telemetry.nvml_slices import SlicePlace, place_of
from benchpool_scheduler.telemetry.nvml_xids import XidWatch
from benchpool_scheduler.telemetry.samples import GpuSample

GIB = 1024**3
MILLI = 1000.0
RETRY_S = 30.0
"""Delay before a library that failed to start is tried again, in seconds."""

THROTTLING: Mapping[str, int] = {
    "power-cap": pynvml.nvmlClocksEventReasonSwPowerCap,
    "power-brake": pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
    "thermal": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
    "hardware-thermal": pynvml.nvmlClocksEventReasonHwThermalSlowdown,
    "hardware-slowdown": pynvml.nvmlClocksEventReasonHwSlowdown,
}
"""Reasons for a reduced clock, by the driver's bit. Idleness is no such reason."""


class Stale(Exception):
    """Invalid handle: the GPU was reset or lost, or the driver was replaced."""


_STALE = (
    pynvml.NVMLError_GpuIsLost,
    pynvml.NVMLError_InvalidArgument,
    pynvml.NVMLError_Uninitialized,
    pynvml.NVMLError_LibRmVersionMismatch,
)
_NEVER = (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound)


class Prober:
    """Calls to the driver for one GPU, without repeating unsupported ones."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self._never: set[str] = set()

    def __call__(self, ask: Callable[..., Any], *more: Any) -> Any:
        """Return the driver's answer, or None. Errors: Stale."""
        name = ask.__name__
        if name in self._never:
            return None
        try:
            return ask(self.handle, *more)
        except _NEVER:
            self._never.add(name)
        except _STALE as stale:
            raise Stale(str(stale)) from stale
        except pynvml.NVMLError:
            pass  # temporary; the next call may succeed
        return None


@dataclass(slots=True)
class _Watched:
    """State of one GPU from the last tick."""

    ask: Prober
    utilisation: Utilisation
    gpm: GpmReader
    place: SlicePlace | None = None
    at: float | None = None
    energy_mj: int | None = None


class NvmlSampler:
    """Sampler of this machine's GPUs; see the port ``GpuSampler``.

    The first call for a GPU only starts its first span: a sample needs two calls.
    """

    def __init__(self) -> None:
        self._connected = False
        self._tried: float | None = None
        self._watched: dict[str, _Watched] = {}
        self._xids = XidWatch()
        self.problem: str | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Measure each GPU once, from the last call until now."""
        if not self._connect(now):
            return ()
        for gone in self._watched.keys() - set(gpus):
            self._forget(gone)
        found = [self._look(gpu, now) for gpu in gpus]
        self._xids.watch({gpu: it.ask.handle for gpu, it in self._watched.items()})
        return [it for it in found if it is not None]

    def close(self) -> None:
        """Release the driver."""
        self._xids.close()
        for gpu in list(self._watched):
            self._forget(gpu)
        if self._connected:
            self._connected = False
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()

    # ------------------------------------------------------------------ internals

    def _connect(self, now: float) -> bool:
        if self._connected:
            return True
        if self._tried is not None and 0 <= now - self._tried < RETRY_S:
            return False
        self._tried = now
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            self.problem = f"GPU use cannot be measured: NVML does not answer ({error})."
            return False
        self._connected, self.problem = True, None
        return True

    def _look(self, gpu: str, now: float) -> GpuSample | None:
        try:
            watched = self._watched.get(gpu)
            if watched is None:
                watched = self._watched[gpu] = _begun(pynvml.nvmlDeviceGetHandleByUUID(gpu))
            return self._measure(gpu, watched, now)
        except (Stale, pynvml.NVMLError):
            self._forget(gpu)  # the next tick gets a new handle
            return None

    def _measure(self, gpu: str, watched: _Watched, now: float) -> GpuSample | None:
        ask, before, place = watched.ask, watched.at, watched.place
        gpm = watched.gpm.read()
        # Utilisation, power and energy are those of the whole board, not of a slice.
        activity = watched.utilisation.read() if place is None else gpm.active
        energy_mj = ask(pynvml.nvmlDeviceGetTotalEnergyConsumption) if place is None else None
        last_mj, watched.energy_mj, watched.at = watched.energy_mj, energy_mj, now
        if before is None or now <= before:
            return None
        span_s = now - before
        power = ask(pynvml.nvmlDeviceGetPowerUsage) if place is None else None
        power_w = None if power is None else power / MILLI
        used, total = _memory(ask)
        return GpuSample(
            at=now,
            span_s=span_s,
            gpu=gpu,
            activity=activity,
            sm_activity=gpm.sm,
            memory_used_gib=used,
            memory_total_gib=total,
            power_w=power_w,
            energy_j=_energy(last_mj, energy_mj, power_w, span_s),
            temperature_c=_degrees(ask(pynvml.nvmlDeviceGetTemperature, 0)),
            throttled=_throttled(ask),
            xid=self._xids.take(gpu),
            parent=None if place is None else place.uuid or None,
        )

    def _forget(self, gpu: str) -> None:
        watched = self._watched.pop(gpu, None)
        if watched is not None:
            watched.gpm.close()


def _begun(handle: Any) -> _Watched:
    ask = Prober(handle)
    place = place_of(ask)
    return _Watched(ask, Utilisation(ask), GpmReader(ask, place), place)


def _memory(ask: Prober) -> tuple[float | None, float | None]:
    """Return GiB in use by programs, and total GiB.

    The first version of the call counts the driver's reserve as used. It is called only where the
    second is not supported.
    """
    found = ask(_memory_of, pynvml.nvmlMemory_v2) or ask(pynvml.nvmlDeviceGetMemoryInfo)
    return (None, None) if found is None else (found.used / GIB, found.total / GIB)


def _memory_of(handle: Any, version: int) -> Any:
    """Call by a name per version, so that the lack of one does not disable the other."""
    return pynvml.nvmlDeviceGetMemoryInfo(handle, version)


def _energy(
    last_mj: int | None, now_mj: int | None, power_w: float | None, span_s: float
) -> float | None:
    """Return the joules of a span: from the counter, or from power if it is missing or was reset.

    >>> _energy(1000, 4000, None, 10.0), _energy(4000, 1000, 50.0, 10.0), _energy(None, 5, None, 1)
    (3.0, 500.0, None)
    """
    if last_mj is not None and now_mj is not None and now_mj >= last_mj:
        return (now_mj - last_mj) / MILLI
    return None if power_w is None else power_w * span_s


def _degrees(answer: int | None) -> float | None:
    return None if answer is None else float(answer)


def _throttled(ask: Prober) -> tuple[str, ...]:
    bits = ask(pynvml.nvmlDeviceGetCurrentClocksEventReasons)
    if bits is None:  # name in drivers before 535
        bits = ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    return tuple(word for word, bit in THROTTLING.items() if (bits or 0) & bit)
