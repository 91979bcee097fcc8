"""A site with names: a name service, a workstation behind a name, and a logged-in browser."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchpool_support.workstation import RunningWorkstation, start

HOST = "pool.example.test"


class HereByName(httpx.HTTPTransport):
    """Transport that resolves every name to this machine, as the site's name server would."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return super().handle_request(
            httpx.Request(
                request.method,
                request.url.copy_with(host="127.0.0.1"),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.host},
            )
        )


def start_with_subdomains(state: Path, **more: Any) -> AbstractContextManager[RunningWorkstation]:
    """Start ``up`` with a subdomain for each user's servers; ``more`` is passed to ``start``."""
    arguments = ["--tls", "self-signed", "--public-host", HOST, "--subdomains"]
    return start(state, arguments=arguments, auth="one-time", **more)


@contextmanager
def administrators_browser(up: RunningWorkstation) -> Iterator[httpx.Client]:
    """Yield a browser that is logged in as the administrator."""
    trusted = ssl.create_default_context(cafile=up.state / "hub" / "tls" / "cert.pem")
    transport = HereByName(verify=trusted)
    with httpx.Client(transport=transport, follow_redirects=True, timeout=60) as browser:
        assert browser.get(up.ready["login_url"]).status_code == 200
        yield browser


def open_lab(up: RunningWorkstation, browser: httpx.Client, user: str) -> httpx.Response:
    """Open a user's server and check that it has a name of its own."""
    lab = browser.get(f"{up.ready['url']}hub/user/{user}/lab")
    assert (lab.status_code, lab.url.host) == (200, f"{user}.{HOST}")
    return lab


def jobs_seen_from(browser: httpx.Client, lab: httpx.Response, user: str) -> Any:
    """Return the jobs in the answer to a user's server."""
    jobs = browser.get(lab.url.join(f"/user/{user}/benchpool/api/v1/jobs"))
    assert jobs.status_code == 200, jobs.text
    return jobs.json()


def follow_to_pool(up: RunningWorkstation, browser: httpx.Client) -> None:
    """Go from the Hub's home page to the pool and check that name and port stay the same."""
    home = browser.get(f"{up.ready['url']}hub/home")
    link = re.search(r'href="([^"]*/services/benchpool/)"', home.text)
    assert link, home.text
    page = browser.get(home.url.join(link[1]))
    assert (page.status_code, page.url.netloc) == (200, home.url.netloc)
