"""Comparison of a driver's answers with benchpool's assumptions.

    python -m benchpool_scheduler.telemetry.nvml_conformance golden.json

It runs on any machine with an NVIDIA GPU, and only reads. The file has each answer or error, its
duration, and which assumptions hold. It has no uuid, process or host name. Exit status: 1 when an
assumption does not hold, 2 without a driver.
"""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pynvml

from benchpool_scheduler.telemetry.nvml import NvmlSampler
from benchpool_scheduler.telemetry.nvml_slices import is_slice
from benchpool_scheduler.telemetry.samples import GpuSample

ROUNDS = 20
PAUSE_S = 0.2
NOWHERE = "GPU-00000000-0000-0000-0000-000000000000"

Answer = Mapping[str, Any]
"""``answer``, or ``error`` with the driver's message."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Assumption of benchpool about the driver; ``holds`` is None if it could not be tested."""

    what: str
    holds: bool | None
    seen: str = ""


@dataclass(frozen=True, slots=True)
class Conformance:
    """Results for one machine.

    Attributes:
        gpus: The answers of each GPU and slice, by the name of the call.
        median_us: Median duration of each call, in microseconds.
    """

    driver: str
    nvml: str
    gpus: Sequence[Mapping[str, Answer]]
    assumptions: Sequence[Assumption]
    median_us: Mapping[str, float]

    @property
    def holds(self) -> bool:
        """Return whether all tested assumptions hold."""
        return all(it.holds is not False for it in self.assumptions)


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a call's answer. Errors: LookupError with the driver's message."""
    try:
        return function(*arguments)
    except pynvml.NVMLError as error:
        name = type(error).__name__.removeprefix("NVMLError_")
        raise LookupError(name) from error


def _answered(function: Callable[..., Any], *arguments: Any) -> Answer:
    try:
        return {"answer": _plain(ask(function, *arguments))}
    except LookupError as error:
        return {"error": str(error)}


def _plain(answer: Any) -> Any:
    """Return an answer in a form that can be compared and printed."""
    if isinstance(answer, bytes):
        return answer.decode(errors="replace")
    if isinstance(answer, list | tuple):
        return [_plain(it) for it in answer]
    fields = getattr(answer, "_fields_", None)
    return {name: getattr(answer, name) for name, *_ in fields} if fields else answer


def _samples(handle: Any) -> list[tuple[int, int]]:
    _, found = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
    return [(int(it.timeStamp), int(it.sampleValue.uiVal)) for it in found]


def _pids(handle: Any) -> int:
    return len(pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle))


CALLS: Mapping[str, Callable[[Any], Any]] = {
    "name": pynvml.nvmlDeviceGetName,
    "memory": pynvml.nvmlDeviceGetMemoryInfo,
    "memory v2": lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2),
    "utilisation": pynvml.nvmlDeviceGetUtilizationRates,
    "samples": _samples,
    "power": pynvml.nvmlDeviceGetPowerUsage,
    "energy": pynvml.nvmlDeviceGetTotalEnergyConsumption,
    "temperature": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, 0),
    "clocks": pynvml.nvmlDeviceGetCurrentClocksEventReasons,
    "processes": _pids,
    "divided": pynvml.nvmlDeviceGetMigMode,
    "gpm": pynvml.nvmlGpmQueryDeviceSupport,
    "minor": pynvml.nvmlDeviceGetMinorNumber,
    "is a slice": lambda handle: is_slice(pynvml.nvmlDeviceIsMigDeviceHandle(handle)),
}
"""Calls for each GPU and slice."""


def devices() -> Iterator[tuple[Any, str]]:
    """Yield the handle and the uuid of each GPU and slice."""
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        yield handle, str(pynvml.nvmlDeviceGetUUID(handle))
        if _answered(pynvml.nvmlDeviceGetMigMode, handle).get("answer", [0])[0] == 1:
            for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
                try:
                    part = ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
                except LookupError:
                    continue
                yield part, str(pynvml.nvmlDeviceGetUUID(part))


def look(sleep: Callable[[float], None] = time.sleep) -> Conformance:
    """Run all calls and checks. Errors: LookupError without a driver."""
    ask(pynvml.nvmlInit)
    try:
        found = list(devices())
        answers = [{name: _answered(call, it) for name, call in CALLS.items()} for it, _ in found]
        took = {name: _median_us(call, [it for it, _ in found]) for name, call in CALLS.items()}
        return Conformance(
            driver=str(pynvml.nvmlSystemGetDriverVersion()),
            nvml=str(pynvml.nvmlSystemGetNVMLVersion()),
            gpus=answers,
            assumptions=_assumptions(found, answers, sleep),
            median_us=took,
        )
    finally:
        pynvml.nvmlShutdown()


def _median_us(call: Callable[[Any], Any], handles: Sequence[Any]) -> float:
    took = []
    for handle in handles:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            _answered(call, handle)
            took.append(time.perf_counter() - began)
    return round(statistics.median(took) * 1e6, 1) if took else 0.0


def _assumptions(
    found: Sequence[tuple[Any, str]],
    answers: Sequence[Mapping[str, Answer]],
    sleep: Callable[[float], None],
) -> list[Assumption]:
    uuids = [uuid for _, uuid in found]
    back = [str(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByUUID(it))) for it in uuids]
    unknown = _answered(pynvml.nvmlDeviceGetHandleByUUID, NOWHERE)
    sampler = NvmlSampler()
    sampler.sample(uuids, 0.0, {})
    before = [_answered(CALLS["energy"], handle).get("answer") for handle, _ in found]
    sleep(PAUSE_S)
    samples = {it.gpu: it for it in sampler.sample(uuids, PAUSE_S, {})}
    after = [_answered(CALLS["energy"], handle).get("answer") for handle, _ in found]
    sampler.close()
    energy = [
        (int(a), int(b))
        for a, b in zip(before, after, strict=True)
        if a is not None and b is not None
    ]
    slices = [it["is a slice"].get("answer") is True for it in answers]
    return [
        Assumption("a uuid resolves to its GPU", back == uuids),
        Assumption("an unknown uuid is not found", "error" in unknown, str(unknown)),
        _every("the second version counts no more memory as used than the first", answers, _v2),
        _every("used memory is at most the total memory", answers, _fits),
        _every("samples have rising times, and at most 100 per cent", answers, _rising),
        Assumption("energy never decreases", all(a <= b for a, b in energy) if energy else None),
        Assumption(
            "the sampler reports each GPU and each slice at the second sample",
            set(samples) == set(uuids),
            f"{len(samples)} of {len(uuids)}",
        ),
        Assumption("its reports are within bounds", all(map(_in_bounds, samples.values()))),
        Assumption(
            "a slice reports neither power nor energy",
            _alone(samples, [u for u, part in zip(uuids, slices, strict=True) if part]),
        ),
    ]


def _every(
    what: str, answers: Sequence[Mapping[str, Answer]], test: Callable[..., bool | None]
) -> Assumption:
    results = [it for it in map(test, answers) if it is not None]
    return Assumption(
        what, all(results) if results else None, f"{len(results)} of {len(answers)} reported"
    )


def _v2(it: Mapping[str, Answer]) -> bool | None:
    one, two = it["memory"].get("answer"), it["memory v2"].get("answer")
    return None if one is None or two is None else bool(two["used"] <= one["used"])


def _fits(it: Mapping[str, Answer]) -> bool | None:
    two = it["memory v2"].get("answer")
    return None if two is None else bool(two["used"] <= two["total"])


def _rising(it: Mapping[str, Answer]) -> bool | None:
    samples = it["samples"].get("answer")
    if not samples:
        return None
    times = [at for at, _ in samples]
    return times == sorted(times) and all(0 <= percent <= 100 for _, percent in samples)


def _in_bounds(it: GpuSample) -> bool:
    shares = [share for share in (it.activity, it.sm_activity) if share is not None]
    used, total = it.memory_used_gib, it.memory_total_gib
    return all(0 <= share <= 1 for share in shares) and (
        used is None or total is None or 0 <= used <= total
    )


def _alone(samples: Mapping[str, GpuSample], slices: Sequence[str]) -> bool | None:
    present = [samples[uuid] for uuid in slices if uuid in samples]
    return all(it.power_w is None and it.energy_j is None for it in present) if present else None


def as_json(found: Conformance) -> str:
    """Return the golden file, sorted for comparison."""
    content = json.dumps(asdict(found), indent=1, sort_keys=True, default=str)
    seen = hashlib.sha256(content.encode()).hexdigest()[:12]
    return json.dumps({"fingerprint": seen, **json.loads(content)}, indent=1, sort_keys=True) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Run the comparison, print it and write the file; return the exit status."""
    try:
        found = look()
    except LookupError as error:
        print(f"No driver answers: {error}.", file=sys.stderr)
        return 2
    print(f"driver {found.driver}, {len(found.gpus)} GPUs and slices")
    for it in found.assumptions:
        word = {True: "holds", False: "DOES NOT HOLD", None: "not seen"}[it.holds]
        print(f"{word:14} {it.what}{f' ({it.seen})' if it.seen else ''}")
    for name, us in sorted(found.median_us.items(), key=lambda pair: -pair[1]):
        print(f"{us:9.1f} us  {name}")
    for file in arguments[:1]:
        Path(file).write_text(as_json(found))
        print(f"written to {file}")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
