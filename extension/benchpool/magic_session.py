"""Session whose cell a magic submits: IPython in this process, or a kernel without benchpool."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from benchpool import failed_inputs

if TYPE_CHECKING:
    from benchpool.kernel.answer import KernelAnswer


class MagicSession(Protocol):
    """What a magic needs from the session of a cell."""

    @property
    def interpreter(self) -> str:
        """Path of the session's Python, which runs the job."""

    def inputs(self) -> Sequence[str]:
        """Return the texts that ran, by number; the last one submits."""

    def failed(self) -> frozenset[int]:
        """Return the numbers of the inputs that failed."""

    def answer(self, history: list[str], names: Iterable[str]) -> KernelAnswer:
        """Return the facts of names. ``history`` has the texts that ran; its first is unused."""

    def write(self, names: Sequence[str], folder: str, pickle: bool) -> str:
        """Write values into an empty folder; return the answer of ``values.sending.write``."""


class OwnSession:
    """The IPython session of this process."""

    def __init__(self, ipython: Any) -> None:
        self._ipython = ipython

    @property
    def interpreter(self) -> str:
        """Path of this Python."""
        return sys.executable

    def inputs(self) -> Sequence[str]:
        """Return the texts that ran here."""
        return list(self._ipython.user_ns.get("In", []))

    def failed(self) -> frozenset[int]:
        """Return the numbers of the inputs that failed here."""
        return failed_inputs.of(self._ipython)

    def answer(self, history: list[str], names: Iterable[str]) -> KernelAnswer:
        """Return the facts of names of this process."""
        from benchpool.kernel import question

        return question.of_this_process(self._ipython.user_ns, history, names)

    def write(self, names: Sequence[str], folder: str, pickle: bool) -> str:
        """Write values of this process."""
        from benchpool.live_values import MOST_BYTES
        from benchpool.values import sending

        return sending.write(names, folder, pickle, MOST_BYTES)
