"""The ports of one workstation, held from their choice until ``benchpool up`` ends.

Hub, proxy and scheduler bind their ports seconds after they were chosen. Until then, and during a
restart, each port stays bound by a socket that never listens. Linux assigns such a port to no
program that requests any free port, and ``SO_REUSEADDR`` lets our servers listen on it. An abstract
Unix socket for each port keeps two workstations from holding the same one.
"""

from __future__ import annotations

import errno
import random
import socket
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

import msgspec

from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.workstation import files
from benchpool_scheduler.workstation.options import LOOPBACK
from benchpool_scheduler.workstation.state import StateFolder

CHOICE = range(10_000, 22_000)
"""Ports to choose from. Linux uses none of them for outgoing connections, so that they are mostly
free at the next start. The ports after them are for replicas of services, see
``worker.loopback_ports``.
"""

TRIES = 100


class Ports(msgspec.Struct, frozen=True):
    """Ports of one workstation, stored so that running processes find Hub and scheduler again."""

    public: int
    hub: int
    proxy_api: int
    scheduler: int


@dataclass(frozen=True, slots=True)
class HeldPorts:
    """Chosen ports.

    Attributes:
        numbers: The ports.
        public_address: The address that the public port is bound on; the others are on loopback.
    """

    numbers: Ports
    public_address: str

    def lost(self) -> list[int]:
        """Return the ports on which a program listens; call it while none of ours does."""
        numbers = self.numbers
        bound = [
            (self.public_address, numbers.public),
            *((LOOPBACK, port) for port in (numbers.hub, numbers.proxy_api, numbers.scheduler)),
        ]
        return [port for address, port in bound if not _is_free(port, address)]


def kept(folder: StateFolder) -> Ports | None:
    """Return the ports of the last start; None without one."""
    return files.read_json(folder.hub / "ports.json", Ports)


@contextmanager
def held(folder: StateFolder, public: int, bind: str) -> Iterator[HeldPorts]:
    """Choose the ports and hold them until the block ends.

    The ports of the last start are chosen again where they are free.

    Args:
        public: The public port, 0 for any.
        bind: The address of the public port.

    Raises:
        InvalidInput: The given public port is in use, or the address is not of this machine.
    """
    old = kept(folder) or Ports(0, 0, 0, 0)
    with ExitStack() as holding:
        first = _named(public, bind) if public else _preferred(old.public, bind, ())
        numbers = [holding.enter_context(first).port]
        for port in (old.hub, old.proxy_api, old.scheduler):
            numbers.append(holding.enter_context(_preferred(port, LOOPBACK, numbers)).port)
        chosen = Ports(*numbers)
        files.write_json(folder.hub / "ports.json", chosen)
        yield HeldPorts(chosen, bind)


class _Hold:
    """Reservation of one port, any free one for 0, until the end of its block.

    Raises:
        OSError: The port is in use, or not permitted.
    """

    def __init__(self, port: int, address: str) -> None:
        self._bound = _bound(port, address)
        self.port: int = self._bound.getsockname()[1]
        self._mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._mark.bind(f"\0benchpool/port/{address}/{self.port}")
        except OSError:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._mark.close()
        self._bound.close()


def _named(port: int, address: str) -> _Hold:
    try:
        return _Hold(port, address)
    except OSError as failed:
        raise InvalidInput(
            f"Port {port} on {address} cannot be used ({failed.strerror}). Choose another with "
            "--port, or any free one with --port 0.",
            field="port",
            numbers={"port": port},
        ) from failed


def _preferred(port: int, address: str, taken: Collection[int]) -> _Hold:
    """Hold this port; any free one if it is 0 or in use."""
    others = random.SystemRandom().sample(CHOICE, TRIES)
    for wanted in (one for one in (port, *others) if one and one not in taken):
        try:
            return _Hold(wanted, address)
        except OSError as failed:
            if failed.errno == errno.EADDRNOTAVAIL:
                raise InvalidInput(
                    f"{address} is not an address of this machine. Choose another with --bind.",
                    field="bind",
                ) from failed
    return _Hold(0, address)


def _is_free(port: int, address: str) -> bool:
    try:
        _bound(port, address).close()
    except OSError:
        return False
    return True


def _bound(port: int, address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        # As the servers do, so that lingering connections of the last start do not block it.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((address, port))
    except OSError:
        one.close()
        raise
    return one
