"""Server ``y`` of joe and the server of joe-y share a Hub name: the later start is rejected."""

from __future__ import annotations

import pytest

from benchpool_support import direct
from benchpool_support.workstation import RunningWorkstation

pytestmark = pytest.mark.slow


def opened_by(up: RunningWorkstation, user: str) -> int:
    """Log in with the shared password, open the user's server, and return the status."""
    with direct.Client(base_url=up.ready["url"], follow_redirects=True, timeout=60) as session:
        session.get("/hub/login")
        token = next(c.value for c in session.cookies.jar if c.name == "_xsrf" and c.value)
        session.post(
            f"/hub/login?_xsrf={token}", data={"username": user, "password": up.shared_password}
        )
        answer = session.get(f"/user/{user}/lab", headers={"Sec-Fetch-Mode": "navigate"})
        assert answer.url.path.startswith(f"/user/{user}/")
        return answer.status_code


def test_named_server_colliding_with_user_is_rejected(
    up: RunningWorkstation,
) -> None:
    up.add_user("joe-y")
    up.start_server("joe-y")
    answer = up.ask_server("joe", "y")
    assert (answer.status_code, answer.json()["message"]) == (
        409,
        "The Hub would confuse server y of joe with the server of another user named joe-y. "
        "Choose another name for it.",
    )
    assert "y" not in up.servers("joe")
    assert opened_by(up, "joe-y") == 200  # unchanged
    up.stop_server("joe-y")
    assert up.ask_server("joe", "y").status_code == 409  # running or not


def test_user_colliding_with_named_server_is_rejected(
    up: RunningWorkstation,
) -> None:
    up.start_server("joe", "late")
    up.add_user("joe-late")
    answer = up.ask_server("joe-late")
    assert answer.status_code == 409
    assert "a running named server of another user" in answer.json()["message"]
    assert up.servers("joe-late") == {}
    assert up.servers("joe")["late"]["ready"]
    up.stop_server("joe", "late")
    up.start_server("joe-late")
    assert opened_by(up, "joe-late") == 200
    up.stop_server("joe-late")


def test_colliding_named_servers_are_rejected(up: RunningWorkstation) -> None:
    up.add_user("eve")
    up.add_user("eve-b")
    up.start_server("eve-b", "c")
    assert up.ask_server("eve", "b-c").status_code == 409
    up.stop_server("eve-b", "c")
    up.start_server("eve", "b-c")
    assert up.ask_server("eve-b", "c").status_code == 409
    up.stop_server("eve", "b-c")
