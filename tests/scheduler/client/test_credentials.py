"""Discovery of the service address and its token."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from benchpool_scheduler.client import Credentials, discover, elsewhere, folder_of_running
from benchpool_scheduler.errors import InvalidInput, NotAuthenticated, Unavailable
from benchpool_scheduler.worker.process_identity import identity

URL = "http://hub.example/services/benchpool"


def running(folder: Path, url: str = URL) -> Path:
    folder.mkdir(exist_ok=True)
    facts = {"pid": 1, "scheduler_api": f"{url}/api/v1", "token_file": "admin-token", "auth": "x"}
    (folder / "up.json").write_text(json.dumps(facts))
    (folder / "admin-token").write_text("from-the-file\n")
    return folder


def test_explicit_arguments_override_environment(tmp_path: Path) -> None:
    environ = {"BENCHPOOL_URL": "http://other", "BENCHPOOL_TOKEN": "other"}
    found = discover(environ, url=f"{URL}/", token="said", state=tmp_path)
    assert (found.url, found.token) == (URL, "said")


def test_notebook_server_uses_its_own_token(tmp_path: Path) -> None:
    environ = {"BENCHPOOL_URL": URL, "JUPYTERHUB_API_TOKEN": "server"}
    assert discover(environ, state=tmp_path).token == "server"


def test_running_workstation_of_user_is_found(tmp_path: Path) -> None:
    found = discover({"BENCHPOOL_STATE": str(running(tmp_path / "s"))})
    assert (found.url, found.token) == (URL, "from-the-file")


def test_token_of_another_hub_is_not_sent_to_workstation(tmp_path: Path) -> None:
    environ = {"JUPYTERHUB_API_TOKEN": "of another hub"}
    assert discover(environ, state=running(tmp_path / "s")).token == "from-the-file"


def test_workstation_token_is_not_sent_elsewhere(tmp_path: Path) -> None:
    state = running(tmp_path / "s")
    assert discover({"BENCHPOOL_URL": URL}, state=state).token == "from-the-file"
    with pytest.raises(NotAuthenticated):
        discover({"BENCHPOOL_URL": "http://elsewhere"}, state=state)


def test_missing_credentials_show_remedy(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="benchpool up"):
        discover({}, state=tmp_path)


def test_damaged_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "up.json").write_text("{")
    with pytest.raises(Unavailable, match="damaged"):
        discover({}, state=tmp_path)


def test_explicit_token_replaces_unreadable_token(tmp_path: Path) -> None:
    state = running(tmp_path / "s")
    (state / "admin-token").unlink()
    with pytest.raises(NotAuthenticated, match=r"\(No such file .*\)\. Pass --url, and --token"):
        discover({}, state=state)
    assert discover({}, state=state, url=URL, token="own").token == "own"


def test_invalid_url_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        discover({}, url="hub.example", token="t", state=tmp_path)


def test_token_is_never_printed() -> None:
    assert "canary" not in repr(Credentials(URL, "canary"))


def test_single_workstation_elsewhere_is_found_and_several_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "usual"))
    with pytest.raises(Unavailable, match="No benchpool runs from"):
        discover({})
    first, second = (start_at(tmp_path / name) for name in ("a b", "c"))
    elsewhere.remember(first)
    assert discover({}).source == str(first)
    assert folder_of_running({}) == first
    with pytest.raises(Unavailable, match="No benchpool runs from"):
        discover({"BENCHPOOL_STATE": str(tmp_path / "none")})  # explicit, without fallback
    elsewhere.remember(second)
    with pytest.raises(Unavailable, match="2 benchpools run here") as several:
        discover({})
    assert f"`export BENCHPOOL_STATE='{first}'`" in several.value.message
    with pytest.raises(Unavailable, match="2 benchpools run here"):
        folder_of_running({})
    assert folder_of_running({}, second) == second
    elsewhere.forget(first)
    assert discover({}).source == str(second)
    text = (second / "up.json").read_text()
    (second / "up.json").write_text(text.replace(identity(os.getpid()) or "", "gone"))
    with pytest.raises(Unavailable, match="No benchpool runs from"):  # its process has ended
        discover({})


def start_at(folder: Path) -> Path:
    """Write the state folder of a workstation that runs as this process."""
    running(folder)
    record = json.loads((folder / "up.json").read_text())
    record |= {"pid": os.getpid(), "process": identity(os.getpid())}
    (folder / "up.json").write_text(json.dumps(record))
    return folder
