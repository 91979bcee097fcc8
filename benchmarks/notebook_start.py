"""Start time of a notebook: on a bench GPU of benchpool, and from plain JupyterHub.

``python benchmarks/notebook_start.py [--count 10]``: from the REST request for a server until its
JupyterLab page answers, on the same machine, with the same proxy and the same Python. Starts of
both alternate, so that other work of the machine affects both. It also prints the time of
``benchpool up``, cold (an empty state folder) and with an existing one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import checkout  # noqa: F401
import httpx
from tables import Figure, show

from benchpool_scheduler.workstation import hub_facts, proxy, state
from benchpool_scheduler.workstation.hub_api import POLL_S
from benchpool_support.workstation import RunningWorkstation, start

TOKEN = "only-for-this-measurement"
PLAIN = """\
c = get_config()
known = {known!r}
ports = known["ports"]
c.JupyterHub.bind_url = f"http://127.0.0.1:{{ports['public']}}/"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{{ports['hub']}}/hub/"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{{ports['proxy_api']}}"
c.ConfigurableHTTPProxy.command = known["proxy"]
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = known["homes"] + "/{{username}}"
c.Spawner.cmd = known["singleuser"]
c.Spawner.args = known["args"]
c.Spawner.default_url = "/lab"
c.JupyterHub.services = [{{"name": "measure", "api_token": known["token"]}}]
c.JupyterHub.load_roles = [
    {{"name": "measure", "services": ["measure"], "scopes": ["admin:users", "admin:servers",
     "access:servers"]}}
]
"""


@contextmanager
def plain_hub(folder: Path) -> Iterator[httpx.Client]:
    """Run JupyterHub with SimpleLocalProcessSpawner and without benchpool."""
    found = proxy.find(os.environ) or proxy.install(os.environ)
    ports = state.ports(state.prepare(folder / "plain"), 0, "127.0.0.1")
    known = {
        "ports": {name: getattr(ports, name) for name in ports.__struct_fields__},
        "proxy": hub_facts.tie_to_parent(list(found.command)),
        "homes": str(folder / "homes"),
        "singleuser": [sys.executable, "-m", "jupyterhub.singleuser"],
        "args": ["--allow-root"] if os.geteuid() == 0 else [],
        "token": TOKEN,
    }
    config = folder / "plain.py"
    config.write_text(PLAIN.format(known=known))
    with (folder / "plain.log").open("w") as log:
        hub = subprocess.Popen(
            hub_facts.tie_to_parent([sys.executable, "-m", "jupyterhub", "-f", str(config)]),
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    headers = {"Authorization": f"token {TOKEN}"}
    url = f"http://127.0.0.1:{ports.public}"
    try:
        with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as client:
            wait_for(client, "/hub/api/")
            yield client
    finally:
        hub.terminate()
        hub.wait(timeout=60)


def wait_for(client: httpx.Client, path: str) -> None:
    """Wait until a page answers with 200."""
    while True:
        try:
            if client.get(path).status_code == 200:
                return
        except httpx.HTTPError:
            pass
        time.sleep(POLL_S / 4)


def one_start(client: httpx.Client, user: str, options: dict[str, int]) -> float:
    """Start a server, wait for its page, stop it; return the seconds until the page answered."""
    server = f"/hub/api/users/{user}/server"
    began = time.perf_counter()
    client.post(server, json=options).raise_for_status()
    wait_for(client, f"/user/{user}/lab")
    took = time.perf_counter() - began
    client.delete(server).raise_for_status()
    while client.get(f"/hub/api/users/{user}").json()["servers"]:
        time.sleep(POLL_S)
    return took


def ups(folder: Path, count: int) -> tuple[list[float], list[float]]:
    """Time ``benchpool up`` with an empty state folder, and again with the same folder."""
    cold, warm = [], []
    for number in range(count):
        for times in (cold, warm):
            with start(folder / f"up{number}", clear=False) as up:
                times.append(float(up.ready["seconds"]))
    return cold, warm


def notebooks(
    folder: Path, up: RunningWorkstation, plain: httpx.Client, count: int
) -> tuple[list[float], list[float]]:
    """Time notebooks of benchpool and of the plain Hub in turn, after one of each to warm up."""
    headers = {"Authorization": f"token {up.ready['admin_token']}"}
    ours, theirs = [], []
    with httpx.Client(base_url=up.ready["url"].rstrip("/"), headers=headers, timeout=60) as client:
        client.post("/hub/api/users/ann")
        plain.post("/hub/api/users/ann")
        for number in range(count + 1):
            pair = one_start(client, "ann", {"gpus": 1}), one_start(plain, "ann", {})
            if number:
                ours.append(pair[0])
                theirs.append(pair[1])
    return ours, theirs


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=10)
    options.add_argument("--json", action="store_true")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = folder / "pool.yaml"
        config.write_text("version: 1\nbuild: {users: {ann: 1}}\nprojects: [{name: p, quota: 7}]\n")
        cold, warm = ups(folder, max(2, chosen.count // 3))
        with start(folder / "state", config=config) as up, plain_hub(folder) as plain:
            ours, theirs = notebooks(folder, up, plain, chosen.count)
    figures = [
        Figure("benchpool up, empty state folder", "s", tuple(cold)),
        Figure("benchpool up, again", "s", tuple(warm)),
        Figure("notebook with a bench GPU, until its page answers", "s", tuple(ours)),
        Figure("notebook of plain JupyterHub, until its page answers", "s", tuple(theirs)),
    ]
    if chosen.json:
        print(json.dumps({one.name: one.runs for one in figures}))
    else:
        show("Starting", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
