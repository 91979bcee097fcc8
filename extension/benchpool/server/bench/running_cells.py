"""Running requests of one kernel and its number of executed cells, read from its IOPub channel.

Jupyter's own ``execution_state`` is the kernel's last status. While a cell runs, an answer to a
widget also reports "idle". So each request is tracked separately.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

DELIMITER = b"<IDS|MSG>"
"""Separator between the addresses of a message and its parts."""

_HEADER, _PARENT, _CONTENT = 2, 3, 5
"""Positions of a message's parts, counted from the delimiter."""

_RESTARTED = frozenset({"starting", "restarting"})


@dataclass(slots=True)
class RunningCells:
    """Activity of one kernel so far.

    Attributes:
        running: IDs of the requests in progress, both cells and answers to widgets.
        executions: Number of cells started.
    """

    running: set[str] = field(default_factory=set)
    executions: int = 0

    def read(self, frames: Sequence[bytes]) -> None:
        """Process one message. Anything but a Jupyter message is ignored.

        >>> cells = RunningCells()
        >>> parent = b'{"msg_type": "execute_request", "msg_id": "1"}'
        >>> busy = b'{"execution_state": "busy"}'
        >>> cells.read([b"", DELIMITER, b"", b'{"msg_type": "status"}', parent, b"{}", busy])
        >>> cells.read([b"", DELIMITER, b"", b'{"msg_type": "execute_input"}', parent, b"{}", b""])
        >>> cells.running, cells.executions
        ({'1'}, 1)
        """
        try:
            at = frames.index(DELIMITER)
            kind = json.loads(frames[at + _HEADER])["msg_type"]
            if kind == "execute_input":
                self.executions += 1
            elif kind == "status":
                parent = json.loads(frames[at + _PARENT])
                self._state(parent, json.loads(frames[at + _CONTENT])["execution_state"])
        except (ValueError, IndexError, KeyError, TypeError):
            return

    def _state(self, parent: dict[str, Any], state: object) -> None:
        if state in _RESTARTED:
            self.running.clear()
        elif state == "idle":
            self.running.discard(str(parent.get("msg_id")))
        elif state == "busy" and parent.get("msg_type") in {"execute_request", "comm_msg"}:
            self.running.add(str(parent["msg_id"]))
