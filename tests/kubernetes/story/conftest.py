"""The site of the story: a release of the chart on two real nodes, and three people at work.

One release serves all tests of this folder. A test that breaks something mends it, and one that
leaves jobs or servers takes the fixture `site`, which takes them away before and after.
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
"""Two GPUs for benches and six for training, of which each project is guaranteed two."""

HOMES = {"susan": "node-1", "jemma": "node-2"}
"""Where homes lie. Their notebooks hold a GPU there, so that three are left on each node."""


SITE = pytest.StashKey[Site]()


# Kept by the run itself: a test that is run again would end a fixture, and the release with it.
@pytest.fixture(scope="session")
def installed(
    request: pytest.FixtureRequest, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory
) -> Site:
    """The installed release; take `site`, which leaves nothing behind from test to test."""
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
    """Install the chart for our three people."""
    # Small pods: two nodes of this cluster share one machine. The other node may fail alone.
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
    """The site with no job and no server at first, and none in the end."""
    installed.clear()
    yield installed
    installed.clear()


@pytest.fixture
def person(installed: Site, browser: Browser) -> Iterator[Callable[[str], Person]]:
    """Make people with a window each, who know their passwords; the windows close at the end."""

    def make(name: str) -> Person:
        return windows.opened(Person(browser, installed.url, name, installed.password(name)))

    yield make
    windows.close_all()
