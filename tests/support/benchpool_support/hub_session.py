"""Users of the Hub's own pages without a browser: they read pages and submit forms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from benchpool_support import direct
from benchpool_support.workstation import RunningWorkstation


@contextmanager
def logged_in(
    up: RunningWorkstation, user: str, password: str | None = None
) -> Iterator[httpx.Client]:
    """Log in at the Hub's login page, with the shared password by default."""
    with direct.Client(base_url=up.ready["url"], follow_redirects=True, timeout=60) as session:
        session.get("/hub/login")
        answer = session.post(
            f"/hub/login?_xsrf={xsrf(session)}",
            data={"username": user, "password": password or up.shared_password},
        )
        assert answer.status_code == 200, answer.text
        yield session


def xsrf(session: httpx.Client) -> str:
    """Return the XSRF token that the Hub's forms carry."""
    return next(c.value for c in session.cookies.jar if c.name == "_xsrf" and c.value)
