"""Denial of devices to the processes of a cgroup v2, by a small BPF program.

In a v1 hierarchy ``devices.deny`` does the same with a line of text.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence

from . import system_calls

Numbers = tuple[int, int]
"""Major and minor number of a character device."""

PROG_LOAD, PROG_ATTACH = 5, 8
PROG_TYPE_CGROUP_DEVICE, CGROUP_DEVICE, ALLOW_MULTI = 15, 6, 2
CHARACTER = 2
"""Constants of ``linux/bpf.h``."""

LOAD, AND, JUMP, NOT_EQUAL, SET, EXIT = 0x61, 0x54, 0x05, 0x55, 0xB7, 0x95
"""Operation codes of BPF that are used here."""


def _step(operation: int, to: int = 0, by: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", operation, (by << 4) | to, offset, value)


def program(denied: Sequence[Numbers]) -> bytes:
    """Return a program that allows everything except these character devices.

    >>> len(program([(195, 0)])) // 8
    12
    """
    pairs = len(denied)
    steps = [
        # The kernel passes three words: kind and access, major, minor.
        _step(LOAD, 2, 1, 0),
        _step(AND, 2, value=0xFFFF),
        _step(LOAD, 3, 1, 4),
        _step(LOAD, 4, 1, 8),
        _step(NOT_EQUAL, 2, offset=3 * pairs, value=CHARACTER),
    ]
    for place, (major, minor) in enumerate(denied):
        to_refusal = 3 * (pairs - 1 - place) + 2
        steps += [
            _step(NOT_EQUAL, 3, offset=2, value=major),
            _step(NOT_EQUAL, 4, offset=1, value=minor),
            _step(JUMP, offset=to_refusal),
        ]
    steps += [_step(SET, value=1), _step(EXIT), _step(SET, value=0), _step(EXIT)]
    return b"".join(steps)


def attach(group: str, denied: Sequence[Numbers]) -> None:
    """Attach the program to a cgroup v2 for its lifetime. Raises OSError."""
    code, licence = program(denied), b"MIT\0"
    text = ctypes.create_string_buffer(code, len(code))
    words = ctypes.create_string_buffer(licence, len(licence))
    places = (ctypes.addressof(text), ctypes.addressof(words))
    loaded = system_calls.bpf(
        PROG_LOAD, struct.pack("=IIQQ", PROG_TYPE_CGROUP_DEVICE, len(code) // 8, *places)
    )
    try:
        folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            attributes = struct.pack("=IIII", folder, loaded, CGROUP_DEVICE, ALLOW_MULTI)
            system_calls.bpf(PROG_ATTACH, attributes)
        finally:
            os.close(folder)
    finally:
        os.close(loaded)
