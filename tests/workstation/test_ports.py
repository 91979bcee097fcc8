"""A workstation holds its ports from their choice on."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.workstation import files, ports, state
from benchpool_scheduler.workstation.options import LOOPBACK
from benchpool_scheduler.workstation.ports import Ports


@pytest.fixture
def folder(tmp_path: Path) -> state.StateFolder:
    return state.prepare(tmp_path / "state")


@pytest.fixture
def other(tmp_path: Path) -> state.StateFolder:
    return state.prepare(tmp_path / "other")


@pytest.fixture
def thief() -> Iterator[socket.socket]:
    """Yield a socket that listens on any port."""
    with closing(listening(0)) as one:
        yield one


def listening(port: int) -> socket.socket:
    """Return a socket that listens like Hub, proxy and scheduler."""
    one = socket.socket()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind((LOOPBACK, port))
    one.listen()
    return one


def chosen(folder: state.StateFolder, public: int = 0) -> Ports:
    with ports.held(folder, public, LOOPBACK) as held:
        return held.numbers


def all_of(numbers: Ports) -> set[int]:
    return {numbers.public, numbers.hub, numbers.proxy_api, numbers.scheduler}


def test_ports_are_kept_between_starts(folder: state.StateFolder) -> None:
    first = chosen(folder)
    assert len(all_of(first)) == 4
    assert chosen(folder) == first


def test_servers_can_listen_on_held_ports(folder: state.StateFolder) -> None:
    with ports.held(folder, 0, LOOPBACK) as held:
        for port in all_of(held.numbers):
            listening(port).close()


def test_held_port_blocks_other_programs(folder: state.StateFolder) -> None:
    with ports.held(folder, 0, LOOPBACK) as held, pytest.raises(OSError, match="in use"):
        socket.socket().bind((LOOPBACK, held.numbers.hub))


def test_two_workstations_hold_different_ports(
    folder: state.StateFolder, other: state.StateFolder
) -> None:
    files.write_json(other.hub / "ports.json", chosen(folder))
    with (
        ports.held(folder, 0, LOOPBACK) as first,
        ports.held(other, 0, LOOPBACK) as second,
    ):
        assert not all_of(first.numbers) & all_of(second.numbers)


def test_public_port_of_another_workstation_is_rejected(
    folder: state.StateFolder, other: state.StateFolder
) -> None:
    with ports.held(folder, 0, LOOPBACK) as held:
        public = held.numbers.public
        with pytest.raises(InvalidInput, match=f"Port {public} .*--port 0"):
            chosen(other, public)
    assert chosen(other, public).public == public


def test_kept_port_in_use_is_replaced(folder: state.StateFolder) -> None:
    first = chosen(folder)
    with closing(listening(first.scheduler)):
        second = chosen(folder)
    assert second.scheduler != first.scheduler
    assert second.hub == first.hub


def test_kept_port_equal_to_public_port_is_replaced(folder: state.StateFolder) -> None:
    first = chosen(folder)
    second = chosen(folder, first.hub)
    assert second.public == first.hub
    assert len(all_of(second)) == 4


def test_public_port_in_use_is_rejected(folder: state.StateFolder, thief: socket.socket) -> None:
    port = thief.getsockname()[1]
    with pytest.raises(InvalidInput, match=f"Port {port} .*--port 0"):
        chosen(folder, port)


def test_address_of_another_machine_is_rejected(folder: state.StateFolder) -> None:
    with (
        pytest.raises(InvalidInput, match=r"192\.0\.2\.1 is not an address of this machine"),
        ports.held(folder, 0, "192.0.2.1"),
    ):
        pass


def test_port_with_foreign_listener_is_lost(folder: state.StateFolder) -> None:
    with ports.held(folder, 0, LOOPBACK) as held:
        assert held.lost() == []
        with closing(listening(held.numbers.proxy_api)):
            assert held.lost() == [held.numbers.proxy_api]
