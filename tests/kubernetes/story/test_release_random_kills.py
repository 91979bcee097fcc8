"""Random kills of the installed release's scheduler and Hub lose or duplicate no job.

As in tests/kubernetes/test_cluster_random_kills.py, with the shipped images on real nodes: a kill
ends the container's process or deletes the pod without grace. ``BENCHPOOL_KILLS_OF_PODS=20``
produces the figure of docs/performance.md.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from contextlib import ExitStack

import pytest

from benchpool_cluster import containers, parts
from benchpool_cluster.kills import ENDED, Outcome, storm
from benchpool_cluster.placements import Record
from benchpool_cluster.processes import NotReady
from benchpool_cluster.sites import Site, lives, state_of
from benchpool_cluster.witness import Object
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_support.senders import Sender
from benchpool_support.waiting import until

KILLS = int(os.environ.get("BENCHPOOL_KILLS_OF_PODS", "4"))
SEED = int(os.environ.get("BENCHPOOL_SEED", "5"))
pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1800 + 60 * KILLS)]

GAP_S = (1.0, 12.0)
"""Interval between two kills, in seconds; shorter and longer than a restart."""
PATIENCE_S = 600.0
"""Timeout in seconds; kubelet restarts a frequently killed container after up to five minutes."""
SLEEP = "import sys, time; time.sleep(float(sys.argv[1]))"
SHAPES = ((1, 1), (2, 1), (1, 2))
"""Pairs of GPUs per worker and number of workers."""


def submission(chance: random.Random) -> JobSubmission:
    gpus, workers = chance.choice(SHAPES)
    entry = CommandEntry(["python3", "-c", SLEEP, f"{chance.uniform(0.5, 6):.1f}"])
    return JobSubmission(entry=entry, gpus=gpus, workers=workers)


def victim(site: Site, kind: str) -> Object | None:
    """Return a pod of a kind whose first container runs now, or None."""
    found = parts.pods_of(site, "hub" if kind == "hub" else "scheduler")
    if kind != "hub":
        leads = parts.leader_name(site)
        found = [one for one in found if (one["metadata"]["name"] == leads) == (kind == "leader")]
    running = [one for one in found if one["status"].get("phase") == "Running"]
    return running[0] if running else None


def kill(site: Site, kind: str) -> bool:
    """Kill a ``leader``, ``standby`` or ``hub``, by ``process`` or by ``pod``."""
    who, how = kind.split(" by ")
    pod = victim(site, who)
    if pod is None:
        return False
    if how == "pod":
        site.access.delete(parts.path_of(pod), grace_seconds=0)
        return True
    try:
        containers.kill(pod)
    except NotReady:  # it waits for its restart
        return False
    return True


def test_random_pod_kills_do_not_lose_or_duplicate_jobs(
    site: Site,
) -> None:
    print(f"seed {SEED}")
    seeds = itertools.count(SEED)
    notebook = site.start_notebook("jemma", gpus=1)
    with ExitStack() as stack:
        clients = {
            name: stack.enter_context(site.client(name, PATIENCE_S)) for name in ("susan", "joe")
        }
        senders = [
            Sender(name, client, submission, random.Random(next(seeds)), pause_s=(0.5, 4.0))
            for name, client in clients.items()
        ]
        began = time.monotonic()
        record = stack.enter_context(Record(site.access, site.workspace))
        before = {one["metadata"]["name"] for one in site.jobs()}
        for sender in senders:
            sender.start()
        kinds = [
            f"{who} by {how}" for who in ("leader", "standby", "hub") for how in ("process", "pod")
        ]

        def settle() -> None:
            parts.wait_whole(site, "scheduler", 2, PATIENCE_S)
            parts.wait_whole(site, "hub", 1, PATIENCE_S)
            site.wait_ready()

        killed = storm(
            lambda kind: kill(site, kind),
            settle,
            kinds,
            random.Random(next(seeds)),
            count=KILLS,
            gap_s=GAP_S,
        )
        stormed = time.monotonic() - began
        for sender in senders:
            sender.end(PATIENCE_S)
        settle()

        def jobs() -> list[Object]:
            return [one for one in site.jobs() if one["metadata"]["name"] not in before]

        until(lambda: all(state_of(one) in ENDED for one in jobs()), seconds=300)
        accepted = {key: id_ for sender in senders for key, id_ in sender.sent.items()}
        found = Outcome.of(accepted, jobs(), record.complete())
    print(f"{killed.total()} kills in {stormed:.0f} s, {dict(killed)}: {found}")
    print(f"all ended after {time.monotonic() - began:.0f} s")
    assert [text for sender in senders for text in sender.refused] == []
    found.hold()
    assert lives(site.notebook("jemma")) == lives(notebook)
