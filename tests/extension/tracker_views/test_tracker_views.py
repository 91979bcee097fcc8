"""TensorBoard and Trackio in a notebook server: displayed runs and access."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from benchpool.tracker_views import entries, event_folders

PROGRAM = """
class TensorBoard:
    def __init__(self, server_class):
        self.server_class = server_class
    def configure(self, argv):
        self.argv = argv
    def main(self):
        import os
        folder = self.argv[1].partition("=")[2]
        def app(environ, start_response):
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [",".join([*sorted(os.listdir(folder)), *self.argv[2:]]).encode()]
        server = self.server_class(app, None)
        server.print_serving_message()
        server.serve_forever()
        return 0
"""


def events(root: Path, *parts: str) -> Path:
    folder = root.joinpath(*parts, "tensorboard")
    folder.mkdir(parents=True)
    return folder


def test_event_folders_are_found_in_all_result_folders(
    tmp_path: Path,
) -> None:
    here = events(tmp_path, "benchpool-results", "train-abc")
    below = events(tmp_path, "a", "b", "benchpool-results", "fine-def")
    trial = events(tmp_path, "a", "benchpool-results", "rates-x", "001")
    events(tmp_path, ".cache", "benchpool-results", "hidden")
    events(tmp_path, "a", "other", "train")
    (tmp_path / "benchpool-results" / "plain-ghi").mkdir()
    (tmp_path / "round").symlink_to(tmp_path)
    assert event_folders.found(tmp_path) == {
        "train-abc": here,
        "fine-def": below,
        "rates-x-001": trial,
    }


def test_home_search_is_breadth_first_and_limited(tmp_path: Path) -> None:
    near = events(tmp_path, "benchpool-results", "near")
    events(tmp_path, *"abcdef", "benchpool-results", "far")
    assert event_folders.found(tmp_path) == {"near": near}
    assert event_folders.found(tmp_path, most=1) == {}


def test_links_match_existing_folders(tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    one, other = events(tmp_path, "one"), events(tmp_path, "other")
    for folders in ({"a": one, "b": other}, {"b": other, "c": one}, {}):
        event_folders.link(links, folders)
        assert {it.name: it.resolve() for it in links.iterdir()} == folders


@contextmanager
def served(home: Path, libraries: Path) -> Iterator[Path]:
    socket = home / "socket"
    env = {**os.environ, "PYTHONPATH": str(libraries)}
    words = [sys.executable, "-m", "benchpool.tracker_views.serve_tensorboard", str(socket)]
    with subprocess.Popen(words, cwd=home, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"TensorBoard at unix:{socket}\n"
        try:
            yield socket
        finally:
            process.terminate()


@pytest.mark.slow
def test_tensorboard_is_served_on_private_socket(tmp_path: Path) -> None:
    (tmp_path / "tensorboard").mkdir()
    (tmp_path / "tensorboard" / "program.py").write_text(PROGRAM)
    events(tmp_path / "home", "benchpool-results", "train-abc")
    with served(tmp_path / "home", tmp_path) as socket:
        transport = httpx.HTTPTransport(uds=str(socket))
        with httpx.Client(transport=transport) as client:
            shown = client.get("http://tensorboard/").text
        assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    assert shown == "train-abc,--load_fast=false"


def test_uninstalled_tracker_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "find_spec", lambda name: name == "trackio" or None)
    board, dashboard = entries.tensorboard(), entries.trackio()
    assert [it["launcher_entry"]["enabled"] for it in (board, dashboard)] == [False, True]
    for one in (board, dashboard):
        # No TCP port, and an open page does not count as activity of the server.
        assert (one["unix_socket"], one["update_last_activity"]) == (True, False)
        assert Path(one["launcher_entry"]["icon_path"]).is_file()
