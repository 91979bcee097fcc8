"""The story's site: a release of the chart on two real nodes, with three users.

One release serves all tests of this folder. A test that breaks something repairs it. A test that
leaves jobs or servers takes the fixture `site`, which removes them before and after.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from benchpool_cluster import releases
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.fixtures import cluster as cluster
from benchpool_cluster.fixtures import cluster_use as cluster_use
from benchpool_cluster.releases import Release
from benchpool_cluster.sites import Site
from benchpool_support import windows
from benchpool_support.people import Person
from benchpool_support.windows import browser as browser
from benchpool_support.windows import (
    pytest_runtest_makereport as pytest_runtest_makereport,
)

POOL: dict[str, Any] = {
    "version": 1,
    "build": {"users": {"susan": 1, "jemma": 1}},
    "projects": [
        {"name": "research", "quota": 6},
        *(
            {"name": name, "parent": "research", "quota": 2, "members": [name]}
            for name in ("susan", "joe", "jemma")
        ),
    ],
    "policy": {"grace_s": 20},
}
"""Pool with two GPUs for benches and six for training; each project has a quota of two."""

HOMES = {"susan": "node-1", "jemma": "node-2"}
"""Nodes of the homes. The owners' notebooks hold a GPU there, which leaves three on each node."""


SITE = pytest.StashKey[Site]()


# Kept by the test session: a rerun of a test would end a fixture and the release with it.
@pytest.fixture(scope="session")
def installed(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    """Return the installed release; use `site` for a clean state in each test."""
    stash = request.config.stash
    if SITE not in stash:
        releases.load_images(cluster)
        name = f"benchpool-{uuid.uuid4().hex[:6]}"
        release = Release(cluster.access, name, tmp_path_factory.mktemp("helm"))
        try:
            stash[SITE] = install(cluster, release)
        except BaseException:
            release.take_away()
            raise
        request.config.add_cleanup(release.take_away)
    return stash[SITE]


def install(cluster: Cluster, release: Release) -> Site:
    """Install the chart for the three users."""
    # Small pods, because both nodes of this cluster share one machine. The other node may fail
    # alone.
    notebooks = {"cpu": {"guarantee": 0.05}, "memory": {"guarantee": "128M"}}
    here = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}
    parts = dict.fromkeys(("hub", "proxy", "scheduler"), here)
    release.install(releases.values() | parts | {"pool": POOL, "notebooks": notebooks})
    made = Site.of(cluster, release)
    for user, node in HOMES.items():
        made.give_home(user, node)
    made.wait_ready()
    return made


@pytest.fixture
def site(installed: Site) -> Iterator[Site]:
    """Yield the site without jobs and servers; clear it again afterwards."""
    installed.clear()
    yield installed
    installed.clear()


@pytest.fixture
def person(installed: Site, browser: Browser) -> Iterator[Callable[[str], Person]]:
    """Yield a factory of users with passwords and browser windows, which close at the end."""

    def make(name: str) -> Person:
        return windows.opened(Person(browser, installed.url, name, installed.password(name)))

    yield make
    windows.close_all()
