"""The documented configuration of jupyterhub-idle-culler works as a service of a real Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.contract import LeaseRequest
from benchpool_scheduler.core.benches.giving_back import Giving
from benchpool_scheduler.core.benches.idle import IdleStep
from benchpool_scheduler.service import Caller
from benchpool_support.checkout import ROOT
from benchpool_support.idle_site import stand
from benchpool_support.real_hub import RealHub, real_hub
from benchpool_support.serving import Served, served

pytestmark = pytest.mark.slow

CONFIGURATION = """\
version: 1
build: {users: {susan: 1}}
idle_benches: {act: true}
"""
TOKEN = "token-of-the-culler"
PATH = "/etc/jupyterhub/idle_culler_config.py"


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "pool", configuration=CONFIGURATION, gpus=1) as service:
        service.identity.people = {
            **service.identity.people,
            TOKEN: Caller("idle-culler", kind="service"),
        }
        yield service


@pytest.fixture
def hub(tmp_path: Path, pool: Served) -> Iterator[RealHub]:
    """Yield a Hub with the configuration of the page, and a culler that waits one second."""
    page = (ROOT / "docs/howto/idle-culler.md").read_text()
    culler, of_hub = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert ("timeout = 3600" in culler, PATH in of_hub) == (True, True)
    file = tmp_path / "idle_culler_config.py"
    file.write_text(culler.replace("3600", "1") + "c.IdleCuller.cull_every = 1\n")
    more = (
        f"c.QuotaMixin.scheduler_url = {pool.url!r}\n{of_hub.replace(PATH, str(file))}\n"
        f"c.JupyterHub.services[-1]['api_token'] = {TOKEN!r}\n"
    )
    with real_hub(tmp_path / "hub", more) as running:
        yield running


def test_documented_culler_spares_bench_until_scheduler_stops_it(
    hub: RealHub, pool: Served
) -> None:
    asked = LeaseRequest(user="susan", server="", spawn="s", gpus=1)
    lease = pool.client("hub").reserve(asked).id
    stand(pool, lease, IdleStep.CPU_PHASE)
    for user in ("susan", "jemma"):
        hub.start_server(user)
    hub.wait_stopped("jemma")
    hub.start_server("joe")  # stopped in a later round, which the first one has preceded
    hub.wait_stopped("joe")
    assert hub.servers("susan")[""]["ready"]
    stand(pool, lease, IdleStep.DUE, Giving.STOPPING)
    hub.wait_stopped("susan")
