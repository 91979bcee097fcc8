"""Who uses the one cluster of a machine: the first run of tests starts it, the last takes it away.

Two locks tell: ``place`` is held by whoever starts or stops it, ``users`` is shared by all who use
it. A run that is killed lets both go, and the cluster then ends with the next run. One that was
started by hand (``make cluster``) stays until it is stopped by hand.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO

from benchpool_cluster import cluster, places

LOG = logging.getLogger(__name__)
BY_HAND = "by-hand"


@dataclass(frozen=True, slots=True)
class Use:
    """One run's use of the cluster."""

    cluster: cluster.Cluster
    lock: IO[str]

    def leave(self) -> None:
        """Stop using it; the last one takes it away, unless it was started by hand."""
        with place():
            if self._is_last() and not is_by_hand():
                cluster.down()
            self.lock.close()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Say whether the cluster is ours alone to stop, and keep others out meanwhile."""
        with place():
            yield self._is_last() and not is_by_hand()
            fcntl.flock(self.lock, fcntl.LOCK_SH)

    def _is_last(self) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


def join() -> Use:
    """Use the running cluster, else start one."""
    with place():
        lock = (places.cache() / "users").open("w")
        fcntl.flock(lock, fcntl.LOCK_SH)
        return Use(cluster.find() or cluster.up(), lock)


def start_by_hand() -> cluster.Cluster:
    """Start a cluster, or take over the running one, to stay until it is stopped by hand."""
    with place():
        running = cluster.find() or cluster.up()
        (running.plane.folder / BY_HAND).touch()
        return running


def stop_by_hand() -> None:
    """Stop the cluster, whoever uses it."""
    with place():
        cluster.down()


def is_by_hand() -> bool:
    """Say whether the running cluster is to stay."""
    return (places.state() / BY_HAND).exists()


@contextmanager
def place() -> Iterator[None]:
    """Let one at a time start or stop the cluster."""
    places.cache().mkdir(parents=True, exist_ok=True)
    with (places.cache() / "place").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            LOG.warning("waiting for another run that starts or stops this machine's cluster")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
