"""Sharing of a machine's only cluster: the first test run starts it, the last run removes it.

Two locks record this: ``place`` is held during a start or stop, and ``users`` is shared by all
users. A killed run releases both, and the cluster then ends with the next run. A cluster started by
hand (``make cluster``) stays until it is stopped by hand.
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
        """End the use; the last user removes the cluster unless it was started by hand."""
        with place():
            if self._is_last() and not is_by_hand():
                cluster.down()
            self.lock.close()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Yield whether this run alone uses the cluster and may stop it.

        New users wait meanwhile.
        """
        with place():
            yield self._is_last() and not is_by_hand()
            fcntl.flock(self.lock, fcntl.LOCK_SH)

    def _is_last(self) -> bool:
        with suppress(BlockingIOError):
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False


def join() -> Use:
    """Use the running cluster, or start one."""
    with place():
        lock = (places.cache() / "users").open("w")
        fcntl.flock(lock, fcntl.LOCK_SH)
        return Use(cluster.find() or cluster.up(), lock)


def start_by_hand() -> cluster.Cluster:
    """Start a cluster, or keep the running cluster, until it is stopped by hand."""
    with place():
        running = cluster.find() or cluster.up()
        (running.plane.folder / BY_HAND).touch()
        return running


def stop_by_hand() -> None:
    """Stop the cluster, even if it is in use."""
    with place():
        cluster.down()


def is_by_hand() -> bool:
    """Return whether the running cluster was started by hand."""
    return (places.state() / BY_HAND).exists()


@contextmanager
def place() -> Iterator[None]:
    """Let one process at a time start or stop the cluster."""
    places.cache().mkdir(parents=True, exist_ok=True)
    with (places.cache() / "place").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            LOG.warning("waiting for another run that starts or stops this machine's cluster")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
