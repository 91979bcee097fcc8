"""The machines of the pool, for administrators: their state, and forms to drain and uncordon."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from msgspec import Struct

from benchpool_scheduler import phrases
from benchpool_scheduler.api import audit, decoding
from benchpool_scheduler.contract import durations
from benchpool_scheduler.contract.nodes import (
    NodeIntake,
    NodeNote,
    NodeOpened,
    NodeReason,
    NodeWindow,
    PoolNode,
)
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.service import Caller, Pool
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.web.pages import FormHandler, PageHandler
from benchpool_scheduler.web.words import Moment, moment

INTAKES: Mapping[NodeIntake, str] = {
    NodeIntake.OPEN: "open",
    NodeIntake.DRAINING: "drains",
    NodeIntake.MAINTENANCE: "in maintenance",
    NodeIntake.NOT_READY: "not ready",
}

Act = Callable[[Pool, Caller, str, Struct], Awaitable[PoolNode]]

ACTS: Mapping[str, Act] = {
    "drain": lambda pool, who, node, body: pool.nodes.drain(who, node, body),  # type: ignore[arg-type]
    "open": lambda pool, who, node, body: pool.nodes.open(who, node, body),  # type: ignore[arg-type]
    "note": lambda pool, who, node, body: pool.nodes.note(who, node, body),  # type: ignore[arg-type]
    "window": lambda pool, who, node, body: pool.nodes.maintain(who, node, body),  # type: ignore[arg-type]
}
OPERATIONS: Mapping[str, Operation[Any]] = {
    "drain": Operations.drain_node,
    "open": Operations.open_node,
    "note": Operations.note_node,
    "window": Operations.maintain_node,
}


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One machine as the page shows it; ``beyond`` has the work that may extend into its window."""

    node: PoolNode
    state: str
    in_use: str
    since: Moment | None
    begins: Moment | None
    ends: Moment | None
    beyond: str

    @property
    def closable(self) -> bool:
        """Return whether it can be drained."""
        return self.node.intake is not NodeIntake.DRAINING

    @property
    def opening(self) -> str:
        """Return the label of the button that makes it available again."""
        return "Cancel maintenance" if self.node.intake is NodeIntake.OPEN else "Uncordon"

    @property
    def openable(self) -> bool:
        """Return whether it has a drain or window to remove."""
        return self.node.since is not None or self.node.window is not None


class _MachinesPage(PageHandler):
    async def show_machines(self, caller: Caller, *, wrong: str = "", at: str = "") -> None:
        """Render the page; ``wrong`` is an error message for the machine ``at``."""
        now = self.site.now()
        await self.show(
            "machines.html",
            self.facts(back="machines"),
            rows=[_row(one, now) for one in self.site.pool.nodes.nodes(caller)],
            wrong=wrong,
            at=at,
            done=self.get_query_argument("done", ""),
        )


class MachinesHandler(_MachinesPage):
    """``GET <prefix>machines``."""

    async def get(self) -> None:
        """Show the page. Errors: Forbidden for users who are not administrators."""
        caller = await self.reader()
        rights.require_admin(caller, "manage machines")
        await self.show_machines(caller)


class MachineActHandler(FormHandler, _MachinesPage):
    """``POST <prefix>machines/<node>/<act>`` with the page's XSRF token."""

    PAGE = "machines"

    async def post(self, node: str, act: str) -> None:
        """Run the action, then redirect; show errors on the page."""
        caller = await self.reader()
        rights.require_admin(caller, "manage machines")
        self.refuse_forged()
        pool, operation = self.site.pool, OPERATIONS[act]
        try:
            body = self._body(act)
            answer = await ACTS[act](pool, caller, node, body)
        except BenchpoolError as refused:
            audit.note(pool, operation, caller, self, refused)
            self.set_status(refused.http_status)
            await self.show_machines(caller, wrong=refused.message, at=node)
            return
        path = {"node": node}
        await pool.audit.record(
            audit.done(operation, caller, self.request, path, body, answer, None)
        )
        self.redirect(f"{self.site.root}machines?done={answer.name}", status=303)

    def _body(self, act: str) -> Struct:
        reason, text = self._field("reason"), self._field("text")
        match act:
            case "drain":
                return decoding.query({"reason": [reason]}, NodeReason)
            case "open":
                return decoding.query({"reason": [reason]}, NodeOpened)
            case "note":
                return decoding.query({"text": [text]}, NodeNote)
        begins = local_time(self._field("begins"), self._field("offset"))
        lasts = durations.seconds(self._field("lasts"))
        if not lasts:
            raise InvalidInput("Give the length of the window, such as 4h or 90m.", field="lasts_s")
        decoding.query({"reason": [reason]}, NodeReason)
        return NodeWindow(begins, round(lasts), reason)

    def _field(self, name: str) -> str:
        return " ".join(self.get_body_argument(name, "").split())


def local_time(text: str, offset_min: str) -> datetime:
    """Return the instant of a form's local time; its script sends the offset, else it is UTC.

    Raises:
        InvalidInput: The text is not a time.

    >>> local_time("2026-11-28T08:00", "60").isoformat()
    '2026-11-28T08:00:00+01:00'
    """
    minutes = int(offset_min) if offset_min.lstrip("-").isdecimal() and len(offset_min) < 6 else 0
    zone = timezone(timedelta(minutes=max(-1439, min(1439, minutes)))) if minutes else UTC
    try:
        at = datetime.fromisoformat(text)
    except ValueError as bad:
        raise InvalidInput(
            "Give the start of the window, such as 2026-11-28 08:00.", field="begins"
        ) from bad
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


def _row(node: PoolNode, now: datetime) -> MachineRow:
    window = node.window
    holders = [
        phrases.count(number, noun)
        for number, noun in ((node.jobs, "job"), (node.benches, "notebook server"))
        if number
    ]
    return MachineRow(
        node,
        INTAKES[node.intake],
        f"{node.held} of {phrases.count(node.gpus, 'GPU')}"
        + (f" by {' and '.join(holders)}" if holders else ""),
        None if node.since is None else moment(node.since, now),
        None if window is None else moment(window.begins, now),
        None if window is None else moment(window.ends, now),
        phrases.run_beyond(node.unfinished) if node.unfinished else "",
    )
