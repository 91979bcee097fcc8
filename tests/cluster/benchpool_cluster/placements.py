"""Record of the worker pods that were bound to a node, in the API server's order, with findings.

``Record`` follows the pods of a namespace by a watch, so that even a short-lived pod is recorded;
the findings are pure functions. Events are ordered as the API server sends them, which is the order
of the writes.

A restarted API server sends no earlier events. Its current objects are listed. Only a pod created,
bound and deleted in the last seconds before its end would be missed.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from benchpool_cluster.access import Access
from benchpool_cluster.processes import NotReady, in_time

JOB, ATTEMPT = "benchpool.io/job", "benchpool.io/attempt"
INDEX = "batch.kubernetes.io/job-completion-index"
OVER = ("Succeeded", "Failed")
CHUNK_S = 5
"""Duration of one watch, in seconds; at its end the API server reports its position."""


@dataclass(frozen=True, slots=True)
class Life:
    """A pod that was bound to a node.

    Attributes:
        worker: Number of the worker in its gang, from 0.
        begun: Number of the event that reported its node. ``over``: number of the event that
            reported its end or deletion; None while it may run.
        phase: Last phase.
    """

    job: str
    attempt: int
    worker: int
    pod: str
    node: str
    begun: int
    over: int | None = None
    phase: str = ""

    def meets(self, other: Life) -> bool:
        """Return whether both had a node at the same time."""
        first, second = sorted((self, other), key=lambda life: life.begun)
        return first.over is None or first.over > second.begun


def doubled(lives: Iterable[Life], workers: Mapping[str, int] | None = None) -> list[str]:
    """Return descriptions of everything that ran twice.

    That is a worker in two pods at the same time, two attempts of a job at the same time, or a job
    with two successful attempts.

    Args:
        workers: By job, number of workers that must succeed for a successful attempt; one by
        default.

    >>> first = Life("j", 1, 0, "p", "n", begun=1, over=5, phase="Succeeded")
    >>> doubled([first, Life("j", 1, 1, "q", "n", begun=2)])
    []
    >>> doubled([first, Life("j", 2, 0, "r", "m", begun=4)])
    ['job j: p (attempt 1, worker 0, on n) and r (attempt 2, worker 0, on m) ran at the same time']
    """
    by_job: dict[str, list[Life]] = defaultdict(list)
    for life in lives:
        by_job[life.job].append(life)
    least = workers or {}
    found = ((job, group, least.get(job, 1)) for job, group in by_job.items())
    return [text for one in found for text in _doubled(*one)]


def attempts(lives: Iterable[Life]) -> Counter[str]:
    """Return the number of attempts of each job that were bound to nodes."""
    return Counter(job for job, _ in {(life.job, life.attempt) for life in lives})


def _doubled(job: str, lives: list[Life], least: int) -> Iterator[str]:
    for one, other in itertools.combinations(lives, 2):
        two = one.worker == other.worker or one.attempt != other.attempt
        if two and one.meets(other):
            yield f"job {job}: {_named(one)} and {_named(other)} ran at the same time"
    phases: dict[int, list[str]] = defaultdict(list)
    for life in lives:
        phases[life.attempt].append(life.phase)
    well = sorted(
        attempt
        for attempt, seen in phases.items()
        if set(seen) == {"Succeeded"} and len(seen) >= least
    )
    if len(well) > 1:
        yield f"job {job}: the attempts {well} all ended well"


def _named(life: Life) -> str:
    return f"{life.pod} (attempt {life.attempt}, worker {life.worker}, on {life.node})"


@dataclass
class Record:
    """Record of a namespace's worker pods from now on, without pods that have already ended.

    Attributes:
        seen: Called with the pod of each event, on the record's own thread.
    """

    access: Access
    namespace: str
    seen: Callable[[dict[str, Any]], None] = lambda pod: None
    _lives: dict[str, Life] = field(default_factory=dict)
    _before: set[str] = field(default_factory=set)
    _events: int = 0
    _version: str = ""
    _ending: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Record:
        ended = (pod for pod in self._listed() if pod["status"].get("phase") in OVER)
        self._before = {pod["metadata"]["uid"] for pod in ended}
        self._list()
        self._thread = threading.Thread(target=self._follow, name="placements", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        assert self._thread is not None
        self._thread.join(4 * CHUNK_S)

    @property
    def lives(self) -> list[Life]:
        """Return all pods bound to a node so far."""
        return list(self._lives.values())

    def complete(self, seconds: float = 60) -> list[Life]:
        """Wait until the record has reached the API server's current state, and return it."""
        bound = [pod for pod in self._listed() if _node(pod)]
        phases = {pod["metadata"]["uid"]: pod["status"].get("phase") for pod in bound}
        now = {uid: phase for uid, phase in phases.items() if uid not in self._before}

        def there() -> bool:
            known = {uid: life.phase for uid, life in list(self._lives.items())}
            return all(known.get(uid) == phase for uid, phase in now.items())

        if not in_time(there, seconds):
            raise NotReady(f"the record of {self.namespace} is behind for more than {seconds:g} s")
        return self.lives

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def _listed(self) -> list[dict[str, Any]]:
        return list(self.access.get(f"{self._path}?labelSelector={JOB}")["items"])

    def _list(self) -> None:
        """Read the current pods; known pods that are missing count as gone."""
        listing = self.access.get(f"{self._path}?labelSelector={JOB}")
        there = {pod["metadata"]["uid"] for pod in listing["items"]}
        for uid, life in list(self._lives.items()):
            if uid not in there and life.over is None:
                self._events += 1
                self._lives[uid] = replace(life, over=self._events)
        for pod in listing["items"]:
            self._take("ADDED", pod)
        self._version = listing["metadata"]["resourceVersion"]

    def _follow(self) -> None:
        while not self._ending.is_set():
            try:
                self._watch()
            except (httpx.HTTPError, json.JSONDecodeError):
                self._ending.wait(0.2)  # the API server is down

    def _watch(self) -> None:
        query = f"watch=1&labelSelector={JOB}&allowWatchBookmarks=true&timeoutSeconds={CHUNK_S}"
        path = f"{self._path}?{query}&resourceVersion={self._version}"
        with self.access.client() as client, client.stream("GET", path) as answer:
            if answer.status_code == 410:  # restarted, without older events
                return self._list()
            for line in answer.raise_for_status().iter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":  # the same in another form
                    return self._list()
                self._version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._take(event["type"], event["object"])
                if self._ending.is_set():
                    return None
        return None

    def _take(self, kind: str, pod: dict[str, Any]) -> None:
        if pod["metadata"]["uid"] in self._before:
            return
        self._events += 1
        about, phase = pod["metadata"], pod["status"].get("phase", "")
        known = self._lives.get(about["uid"]) or self._begun(pod)
        if known is not None:
            ended = kind == "DELETED" or phase in OVER
            over = self._events if ended and known.over is None else known.over
            self._lives[about["uid"]] = replace(known, over=over, phase=phase)
        if kind != "DELETED":
            self.seen(pod)

    def _begun(self, pod: dict[str, Any]) -> Life | None:
        labels = pod["metadata"]["labels"]
        if not _node(pod):
            return None
        return Life(
            job=labels[JOB],
            attempt=int(labels[ATTEMPT]),
            worker=int(labels.get(INDEX, 0)),
            pod=pod["metadata"]["name"],
            node=_node(pod),
            begun=self._events,
        )


def _node(pod: dict[str, Any]) -> str:
    return str(pod["spec"].get("nodeName", ""))
