"""Connection from a page to a kernel that holds cells while the bench is parked.

Kernels are unchanged: nothing is loaded into them, and kernels of other languages wait too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jupyter_server.services.kernels.connection import base, channels

from benchpool.server.parked.parked_watch import ParkedWatch

SETTING = "benchpool_parked"
RUNS_CODE = frozenset({"execute_request", "comm_open", "comm_msg", "comm_close"})
"""Messages that make a kernel run the user's code."""

V1 = "v1.kernel.websocket.jupyter.org"

Message = str | bytes

_wire: Any = base
_Connection: Any = channels.ZMQChannelsWebsocketConnection
"""Jupyter's own connection, whose methods have no type annotations."""


class HoldingConnection(_Connection):  # type: ignore[misc]
    """Connection that holds cells in order, shows the reason, and ends them on an interrupt."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self._held: list[tuple[Message, Mapping[str, Any]]] = []
        self._shown = False

    @property
    def _watch(self) -> ParkedWatch | None:
        found: ParkedWatch | None = self.websocket_handler.settings.get(SETTING)
        return found

    def handle_incoming_message(self, incoming_msg: Message) -> None:
        """Forward a message, or hold it until the bench is back."""
        watch = self._watch
        if watch is not None and (watch.must_wait or self._held):
            channel, header = self._head(incoming_msg)
            if channel == "shell" and header.get("msg_type") in RUNS_CODE:
                self._held.append((incoming_msg, header))
                watch.hold(self)
                return
        super().handle_incoming_message(incoming_msg)

    def disconnect(self) -> None:
        """Drop the held messages: the page has closed."""
        if self._watch is not None:
            self._watch.let_go(self)
        self._held.clear()
        super().disconnect()

    def show(self, text: str) -> None:
        """Show a sentence below the first held cell, replacing the previous one."""
        if self._held:
            _, header = self._held[0]
            if self._shown:
                self._send("iopub", "clear_output", {"wait": True}, header)
            self._send("iopub", "stream", {"name": "stderr", "text": f"{text}\n"}, header)
            self._shown = True

    def let_go(self) -> None:
        """Send the held messages to the kernel, and remove the sentence."""
        held, self._held = self._held, []
        if held and self._shown:
            self._send("iopub", "clear_output", {"wait": False}, held[0][1])
        self._shown = False
        for message, _ in held:
            super().handle_incoming_message(message)

    def give_up(self) -> None:
        """End the held cells as a kernel ends interrupted ones; none of them ran."""
        held, self._held = self._held, []
        self._shown = False
        error = {"ename": "KeyboardInterrupt", "evalue": "not run", "traceback": []}
        for _, header in held:
            if header.get("msg_type") == "execute_request":
                self._send("iopub", "error", error, header)
                reply = {"status": "error", "execution_count": None, **error}
                self._send("shell", "execute_reply", reply, header)
            self._send("iopub", "status", {"execution_state": "idle"}, header)

    def _send(
        self, channel: str, kind: str, content: Mapping[str, Any], parent: Mapping[str, Any]
    ) -> None:
        message = self.session.msg(kind, content=dict(content), parent=dict(parent))
        if self.subprotocol == V1:
            packed = _wire.serialize_msg_to_ws_v1(message, channel, self.session.pack)
            self.write_message(packed, binary=True)
        else:
            message["channel"] = channel
            self.write_message(json.dumps(message, default=str))

    def _head(self, message: Message) -> tuple[str, Mapping[str, Any]]:
        """Return the channel and header of a message from the page."""
        if self.subprotocol == V1:
            channel, parts = _wire.deserialize_msg_from_ws_v1(message)
            return channel, self.session.unpack(parts[0])
        found = (
            _wire.deserialize_binary_message(message)
            if isinstance(message, bytes)
            else json.loads(message)
        )
        return found.get("channel") or "shell", found["header"]
