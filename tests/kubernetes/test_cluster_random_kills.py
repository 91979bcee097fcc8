"""Random kills of scheduler and Hub, while jobs come and go, lose or duplicate no job.

The scheduler's two replicas and JupyterHub are processes, the API server is real, and kwok
simulates the nodes. Each worker ends by itself after some seconds. A killed process restarts as a
fork of an interpreter with its imports done, so that most kills hit a working process.

``BENCHPOOL_KILLS=200`` produces the figure of docs/performance.md. ``BENCHPOOL_SEED`` selects
another course of events.
"""

from __future__ import annotations

import heapq
import itertools
import os
import random
import secrets
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchpool_cluster.access import Access
from benchpool_cluster.kills import ENDED, Outcome, storm
from benchpool_cluster.placements import Record
from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support import direct
from benchpool_support.balanced import balanced
from benchpool_support.forked import Forks
from benchpool_support.kube_hub import (
    ADMIN_TOKEN,
    SERVICE_TOKEN,
    KubeHub,
    Notebooks,
    python_with_hub,
    running,
)
from benchpool_support.replicas import PREFIX, Replica, Site
from benchpool_support.senders import Sender
from benchpool_support.waiting import until

KILLS = int(os.environ.get("BENCHPOOL_KILLS", "6"))
SEED = int(os.environ.get("BENCHPOOL_SEED", "5"))
pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1800 + 60 * KILLS)]

GAP_S = (0.2, 4.0)
"""Interval between two kills, in seconds; shorter and longer than a restart."""
AWAY_S = (0.0, 1.5)
"""Delay before a killed process is restarted, in seconds."""
RUN_S = (0.5, 4.0)
PATIENCE_S = 240.0

CONFIGURATION = """\
version: 1
build: {default: 1, reserve: 2}
projects:
  - {name: susan, quota: 4, members: [susan]}
  - {name: joe, quota: 4, members: [joe]}
policy: {grace_s: 2, preemptions_per_hour: 1000, preemptions_per_day: 24000}
"""
SHAPES: tuple[dict[str, Any], ...] = (
    {"gpus": 1},
    {"gpus": 2},
    {"gpus": 4},
    {"gpus": 1, "workers": 2},
    {"gpus": 2, "workers": 3, "min_workers": 1},
)


def submission(chance: random.Random) -> JobSubmission:
    return JobSubmission(entry=CommandEntry(["train"]), **chance.choice(SHAPES))


@dataclass
class Workers:
    """Thread that ends each pod some time after its start, in place of its command."""

    access: Access
    namespace: str
    chance: random.Random
    _known: set[str] = field(default_factory=set)
    _due: list[tuple[float, str]] = field(default_factory=list)
    _change: threading.Condition = field(default_factory=threading.Condition)
    _ending: bool = False

    def see(self, pod: dict[str, Any]) -> None:
        """Record a running pod."""
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        if pod["status"].get("phase") == "Running" and uid not in self._known:
            self._known.add(uid)
            with self._change:
                heapq.heappush(self._due, (time.monotonic() + self.chance.uniform(*RUN_S), name))
                self._change.notify()

    def run(self) -> None:
        """End pods when due, until the end is requested."""
        while True:
            with self._change:
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if self._ending:
                    return
                if wait is None or wait > 0:
                    self._change.wait(wait)
                    continue
                _, name = heapq.heappop(self._due)
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}"
            with suppress(httpx.HTTPStatusError):  # already paused and gone
                self.access.patch(path, {"metadata": {"annotations": {"tests/exit": "0"}}})

    def end(self) -> None:
        with self._change:
            self._ending = True
            self._change.notify()


@dataclass
class Notebook:
    """A user who starts and stops a GPU server continuously."""

    hub: KubeHub
    user: str
    started: int = 0
    _enough: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._enough.is_set():
            with suppress(httpx.HTTPError, ValueError):  # the Hub is down, or its proxy reports so
                self.hub.ask_server(self.user, gpus=1)
                ready = self._within(20, lambda: bool((self._server() or {}).get("ready")))
                self.started += ready
                self.hub.stop_server(self.user)
                self._within(20, lambda: self._server() is None)
            self._enough.wait(0.2)

    def end(self) -> None:
        self._enough.set()

    def _server(self) -> dict[str, Any] | None:
        return self.hub.server(self.user)

    def _within(self, seconds: float, holds: Any) -> bool:
        end = time.monotonic() + seconds
        while not (found := bool(holds())) and time.monotonic() < end:
            if self._enough.wait(0.2):
                return False
        return found


@dataclass
class ForkedReplica(Replica):
    """A replica that starts without import time."""

    forks: Forks

    def __post_init__(self) -> None:
        self.process = self.forks.start(  # type: ignore[assignment]
            "benchpool_scheduler.app", environ=self.environ, log=self.log
        )


@dataclass
class ForkedHub(KubeHub):
    """A Hub that restarts without import time."""

    forks: Forks | None = None

    def start_again(self) -> None:
        """Start the Hub as at first."""
        assert self.forks is not None
        self.process = self.forks.start(  # type: ignore[assignment]
            *("jupyterhub", "-f", str(self.folder / "config.py")),
            environ=self._environment(),
            log=self.folder / "hub.log",
            folder=self.folder,
        )
        self.wait_up()


@dataclass
class Lab:
    """A Hub and two replicas, each restarted after a kill."""

    access: Access
    hub: ForkedHub
    site: Site
    url: str
    replicas: dict[str, Replica]
    forks: Forks
    _timers: list[threading.Timer] = field(default_factory=list)
    _away: set[str] = field(default_factory=set)

    def kill(self, kind: str, away_s: float) -> bool:
        """Kill the ``leader``, the ``standby`` or the ``hub``; return whether there was one."""
        self._tend()
        if kind == "hub":
            return self._kill_hub(away_s)
        leader = self.leader()
        names = [name for name in self.replicas if (name == leader) == (kind == "leader")]
        name = next((one for one in names if self.replicas[one].process.poll() is None), None)
        if name is None:
            return False
        self._away.add(name)
        self.replicas[name].kill()
        self._later(away_s, lambda: self._start(name))
        return True

    def leader(self) -> str:
        """Return the name of the leading replica according to the API server."""
        group = "/apis/coordination.k8s.io/v1"
        path = f"{group}/namespaces/{self.site.namespace}/leases/benchpool-scheduler"
        holder = (self.access.find(path) or {}).get("spec", {}).get("holderIdentity", "")
        return str(holder).partition("-")[0]

    def settle(self) -> None:
        """Wait until a leader answers; other processes may still be starting."""

        def led() -> bool:
            self._tend()
            return any(_holds_the_pool(one) for one in list(self.replicas.values()))

        until(led)

    def whole(self) -> None:
        """Wait until all killed processes are back."""
        for timer in self._timers:
            timer.join()
        self.settle()
        until(self._hub_answers)
        until(lambda: all(one.serves(ADMIN_TOKEN) for one in self.replicas.values()))

    def _tend(self) -> None:
        """Restart ended processes, as a kubelet does for a leader without lease."""
        for name, one in list(self.replicas.items()):
            if one.process.poll() is not None and name not in self._away:
                self._start(name)
        if self.hub.process is not None and self.hub.process.poll() is not None:
            self._kill_hub(0.0)

    def _hub_answers(self) -> bool:
        self._tend()
        try:
            return self.hub.api("GET", "info").is_success
        except httpx.HTTPError:
            return False

    def _kill_hub(self, away_s: float) -> bool:
        if self.hub.process is None:
            return False
        self.hub.stop(signal.SIGKILL)  # it may have ended by itself
        self._later(away_s, self._start_hub)
        return True

    def _start_hub(self) -> None:
        with suppress(AssertionError):  # killed before it was ready
            self.hub.start_again()

    def _start(self, name: str) -> None:
        before = self.replicas[name]
        again = ForkedReplica(name, before.environ, before.port, before.log, self.forks)
        self.replicas[name] = again
        self.site.replicas.append(self.replicas[name])
        self._away.discard(name)

    def _later(self, seconds: float, act: Any) -> None:
        timer = threading.Timer(seconds, act)
        timer.start()
        self._timers.append(timer)


def _holds_the_pool(replica: Replica) -> bool:
    """Return whether a replica reaches a leader, which rejects a request without a token."""
    try:
        return direct.get(f"{replica.url}/api/v1/jobs").status_code == 401
    except httpx.HTTPError:
        return False


@pytest.fixture
def lab(access: Access, nodes: tuple[str, ...], tmp_path: Path) -> Iterator[Lab]:
    """Yield a Hub and two replicas that answer at one address."""
    namespace = f"kills-{secrets.token_hex(4)}"
    about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    access.create("/api/v1/namespaces", about)
    notebooks = Notebooks()
    with ExitStack() as stack:
        stack.callback(access.delete, f"/api/v1/namespaces/{namespace}")
        stack.callback(notebooks.close)
        ports: list[int] = []
        port = stack.enter_context(balanced(ports, random.Random(SEED)))
        address = f"http://127.0.0.1:{port}{PREFIX.rstrip('/')}"
        python = python_with_hub(None)
        forks = Forks(
            *("benchpool_scheduler.app.cluster", "jupyterhub.app", "benchpool_spawner.kube"),
            environ=os.environ | {"KUBECONFIG": str(access.kubeconfig)},
        )
        stack.callback(forks.close)
        hub = ForkedHub(tmp_path / "hub", python, access.kubeconfig, address, namespace, notebooks)
        hub.forks = forks
        more = {"JUPYTERHUB_API_TOKEN": SERVICE_TOKEN, "BENCHPOOL_LEADER_LEASE_S": "15"}
        site = Site(hub.api_url, access.kubeconfig, namespace, tmp_path, CONFIGURATION, more)
        stack.callback(site.close)
        stack.enter_context(running(hub))
        replicas = {name: site.start(name) for name in ("a", "b")}
        ports += [one.port for one in replicas.values()]
        until(lambda: all(one.answers() for one in replicas.values()))
        yield Lab(access, hub, site, address, replicas, forks)


def person(lab: Lab, name: str) -> Client:
    """Return a client with a token created by the Hub."""
    lab.hub.add_user(name)
    token = lab.hub.api("POST", f"users/{name}/tokens", json={}).json()["token"]
    return Client(Credentials(lab.url, token), patience_s=PATIENCE_S)


def jobs(lab: Lab) -> list[dict[str, Any]]:
    """Return all TrainingJobs of the API server."""
    path = f"/apis/benchpool.io/v1/namespaces/{lab.site.namespace}/trainingjobs"
    return list(lab.access.get(path)["items"])


def all_ended(lab: Lab) -> bool:
    return all(one.get("status", {}).get("state") in ENDED for one in jobs(lab))


def test_random_kills_do_not_lose_or_duplicate_jobs(lab: Lab) -> None:
    print(f"seed {SEED}")
    seeds = itertools.count(SEED)
    senders = [
        Sender(name, person(lab, name), submission, random.Random(next(seeds)), pause_s=(0.2, 2.0))
        for name in ("susan", "joe")
    ]
    lab.hub.add_user("jemma")
    workers = Workers(lab.access, lab.site.namespace, random.Random(next(seeds)))
    notebook = Notebook(lab.hub, "jemma")
    threads = [threading.Thread(target=it.run, daemon=True) for it in (workers, notebook)]
    chance = random.Random(next(seeds))
    began = time.monotonic()
    with Record(lab.access, lab.site.namespace, workers.see) as record:
        for thread in threads:
            thread.start()
        for sender in senders:
            sender.start()
        killed = storm(
            lambda kind: lab.kill(kind, chance.uniform(*AWAY_S)),
            lab.settle,
            ("leader", "standby", "hub"),
            chance,
            count=KILLS,
            gap_s=GAP_S,
        )
        stormed = time.monotonic() - began
        lab.whole()
        for sender in senders:
            sender.end(4 * PATIENCE_S)
        notebook.end()
        with suppress(AssertionError):  # unfinished jobs are reported below
            until(lambda: all_ended(lab), seconds=180)
        accepted = {key: id_ for sender in senders for key, id_ in sender.sent.items()}
        found = Outcome.of(accepted, jobs(lab), record.complete())
        workers.end()
    print(f"{killed.total()} kills in {stormed:.0f} s, {dict(killed)}: {found}")
    print(f"{notebook.started} notebooks; all ended after {time.monotonic() - began:.0f} s")
    assert [text for sender in senders for text in sender.refused] == []
    found.hold()
    _nothing_is_held(lab)


def _nothing_is_held(lab: Lab) -> None:
    """Stop the last server and check that its lease ends."""

    def ended() -> bool:
        # Stop requests are repeated until the server has ended. The Hub's answers are printed.
        if (server := lab.hub.server("jemma")) is not None and server["pending"] != "stop":
            answer = lab.hub.stop_server("jemma")
            print(f"{server} is asked to end: {answer.status_code} {answer.text}")
        return server is None

    lab.hub.until(ended)
    space = lab.site.namespace
    leases = f"/apis/benchpool.io/v1/namespaces/{space}/buildleases"
    until(lambda: not lab.access.get(leases)["items"])
    notebooks = f"/api/v1/namespaces/{space}/pods?labelSelector=benchpool.io/role=notebook"
    until(lambda: not lab.access.get(notebooks)["items"])
