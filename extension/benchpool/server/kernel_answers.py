"""Short queries to the kernels of this notebook server. Busy kernels are not queried."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable
from typing import Any

from benchpool.kernel import question
from benchpool.kernel.answer import KernelAnswer, NotAsked

BUDGET_S = 0.3
"""Time that the dialog waits for a kernel, in seconds."""

FROM_CODE = "the cells to include were found from the code alone"


class KernelAnswers:
    """Queries to kernels, one at a time per kernel.

    Args:
        manager: Jupyter's kernel manager.
    """

    def __init__(self, manager: Any, budget_s: float = BUDGET_S) -> None:
        self._manager = manager
        self._budget_s = budget_s
        self._locks: dict[str, asyncio.Lock] = {}

    @property
    def manager(self) -> Any:
        """Jupyter's kernel manager."""
        return self._manager

    async def ask(self, kernel_id: str | None, names: Iterable[str]) -> KernelAnswer | NotAsked:
        """Return what the names hold and which cells ran, or why the kernel was not queried.

        The kernel's state does not change.
        """
        if kernel_id is None or kernel_id not in self._manager:
            return NotAsked(f"No kernel runs for this notebook: {FROM_CODE}.")
        kernel = self._manager.get_kernel(kernel_id)
        state = getattr(kernel, "execution_state", None)
        if state != "idle":
            word = "is busy" if state == "busy" else "is not ready"
            return NotAsked(f"The kernel {word} and was not queried: {FROM_CODE}.")
        try:
            async with (
                asyncio.timeout(self._budget_s),
                self._locks.setdefault(kernel_id, asyncio.Lock()),
            ):
                return await _asked(kernel, names)
        except TimeoutError:
            waited = f"{self._budget_s * 1000:.0f} ms"
            return NotAsked(f"The kernel gave no answer within {waited}: {FROM_CODE}.")
        except ValueError as wrong:
            return NotAsked(f"{str(wrong)[:1].upper()}{str(wrong)[1:]}; {FROM_CODE}.")


async def _asked(kernel: Any, names: Iterable[str]) -> KernelAnswer:
    expression = question.expression(names)
    return question.read(await evaluated(kernel, question.KEY, expression))


async def evaluated(kernel: Any, key: str, expression: str) -> Any:
    """Return the reply of a kernel to one expression, evaluated silently."""
    session = kernel.session.clone()
    session.session = uuid.uuid4().hex  # own session ID: the page uses the kernel's
    client = kernel.client(session=session)
    client.start_channels(iopub=False, stdin=False, hb=False, control=False)
    try:
        asked = client.execute(
            "",
            silent=True,
            store_history=False,
            allow_stdin=False,
            stop_on_error=False,
            user_expressions={key: expression},
        )
        while True:
            reply = await client.get_shell_msg(timeout=None)
            if reply["parent_header"].get("msg_id") == asked:
                return reply["content"]
    finally:
        client.shell_channel.stop()
