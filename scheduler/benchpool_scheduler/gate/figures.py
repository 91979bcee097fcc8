"""Figures of the requests of each service: in flight now, and over the last minute.

Latencies are exact over a bounded window: the last ``WINDOW_S`` seconds, of these at most the
newest ``MOST_SAMPLES`` requests. Requests are counted in whole seconds, so their number is correct
even beyond ``MOST_SAMPLES``.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

WINDOW_S = 60
MOST_SAMPLES = 2000
MOST_SERVICES = 10_000
"""Number of service names beyond which the figures of quiet services are removed."""


@dataclass(frozen=True, slots=True)
class ServiceFigures:
    """Request figures of one service.

    Attributes:
        requests_per_s: Over the last minute; an upgrade to a websocket counts as one request.
        p50_ms, p95_ms: From the arrival of a request to the last byte of its answer; None without
            requests.
        in_flight: Requests and websockets that are open now, and requests that wait for a replica.
        last_request_at: Time of the last request that a replica got, by the gate's clock; None if
            there was none since the process began.
        unserved_at: Time of the last request that found no ready replica; None if there was none.
    """

    requests_per_s: float
    p50_ms: float | None
    p95_ms: float | None
    in_flight: int
    last_request_at: float | None
    unserved_at: float | None = None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value that this share of the values does not exceed (nearest rank), or None.

    >>> quantile([1.0, 2.0, 3.0, 4.0], 0.5), quantile([1.0, 2.0, 3.0, 4.0], 0.95), quantile([], 0.5)
    (2.0, 4.0, None)
    """
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(slots=True)
class _Window:
    counts: deque[tuple[int, int]] = field(default_factory=deque)
    samples: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=MOST_SAMPLES))
    last: float | None = None
    unserved: float | None = None

    def came(self, now: float) -> None:
        self.last = now
        second, count = self.counts[-1] if self.counts else (-1, 0)
        if second == int(now):
            self.counts[-1] = (second, count + 1)
        else:
            self.counts.append((int(now), 1))
            self.forget(now)

    def forget(self, now: float) -> None:
        while self.counts and self.counts[0][0] <= now - WINDOW_S:
            self.counts.popleft()
        while self.samples and self.samples[0][0] <= now - WINDOW_S:
            self.samples.popleft()


class RequestFigures:
    """Request figures of all services.

    Args:
        now: Clock in seconds; also the clock for comparisons with ``last_request_at``.

    >>> at = [100.0]
    >>> figures = RequestFigures(lambda: at[0])
    >>> figures.begin("chat", "j1")
    >>> figures.of("chat").in_flight, figures.in_flight("chat", "j1")
    (1, 1)
    >>> figures.end("chat", "j1", took_s=0.25)
    >>> seen = figures.of("chat")
    >>> round(seen.requests_per_s, 3), seen.p50_ms, seen.in_flight, seen.last_request_at
    (0.017, 250.0, 0, 100.0)
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: dict[str, _Window] = {}
        self._open: Counter[str] = Counter()
        self._open_at: Counter[str] = Counter()
        self._turns: dict[str, int] = {}
        self._turn = 0
        self._drained: dict[str, list[asyncio.Future[None]]] = {}

    @property
    def by_backend(self) -> Counter[str]:
        """Requests in flight by replica ID; read only."""
        return self._open_at

    @property
    def turns(self) -> dict[str, int]:
        """Increasing number of each replica's last request; read only."""
        return self._turns

    def begin(self, name: str, backend: str) -> None:
        """Count a request that goes to a replica."""
        self._window(name).came(self._now())
        self._open[name] += 1
        self._open_at[backend] += 1
        self._turn += 1
        self._turns[backend] = self._turn

    def unserved(self, name: str) -> None:
        """Note a request that found no ready replica."""
        self._window(name).unserved = self._now()

    @contextmanager
    def waiting(self, name: str) -> Iterator[None]:
        """Count a request that waits for a replica inside this context."""
        self._open[name] += 1
        try:
            yield
        finally:
            self._closed(self._open, name)
            self.unserved(name)

    def end(self, name: str, backend: str, took_s: float | None) -> None:
        """Count the end of a request; ``took_s`` is None if its duration does not count."""
        now = self._now()
        window = self._windows.get(name)
        if window is not None and took_s is not None:
            window.samples.append((now, took_s * 1000))
            window.forget(now)
        self._closed(self._open, name)
        self._closed(self._open_at, backend)
        if backend not in self._open_at:
            for waiting in self._drained.pop(backend, ()):
                if not waiting.done():
                    waiting.set_result(None)

    def in_flight(self, name: str, backend: str | None = None) -> int:
        """Return the number of open requests of a service, at all replicas or at one."""
        return self._open[name] if backend is None else self._open_at[backend]

    async def drained(self, backend: str) -> None:
        """Wait until a replica has no request in flight."""
        while self._open_at[backend]:
            waiting = asyncio.get_running_loop().create_future()
            self._drained.setdefault(backend, []).append(waiting)
            await waiting

    def forget(self, backend: str) -> None:
        """Remove the figures of an ended replica."""
        self._turns.pop(backend, None)

    def of(self, name: str) -> ServiceFigures:
        """Return the figures of a service."""
        window = self._windows.get(name)
        if window is None:
            return ServiceFigures(0.0, None, None, self._open[name], None)
        window.forget(self._now())
        ordered = sorted(took for _, took in window.samples)
        return ServiceFigures(
            requests_per_s=sum(count for _, count in window.counts) / WINDOW_S,
            p50_ms=quantile(ordered, 0.5),
            p95_ms=quantile(ordered, 0.95),
            in_flight=self._open[name],
            last_request_at=window.last,
            unserved_at=window.unserved,
        )

    @staticmethod
    def _closed(counter: Counter[str], key: str) -> None:
        counter[key] -= 1
        if counter[key] <= 0:
            del counter[key]

    def _window(self, name: str) -> _Window:
        self._make_room()
        return self._windows.setdefault(name, _Window())

    def _make_room(self) -> None:
        if len(self._turns) >= MOST_SERVICES:
            self._turns = {key: turn for key, turn in self._turns.items() if key in self._open_at}
        if len(self._windows) >= MOST_SERVICES:
            self._windows = {
                name: window for name, window in self._windows.items() if self._open[name]
            }
