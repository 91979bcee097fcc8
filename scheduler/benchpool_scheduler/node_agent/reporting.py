"""Sending of reports to the scheduler: one request each, never repeated."""

from __future__ import annotations

from pathlib import Path

import httpx
import msgspec

from benchpool_scheduler.contract.node_report import NodeReport, NodeReportTaken
from benchpool_scheduler.contract.operations import Operations

TIMEOUT_S = 10.0
MOST_ANSWER = 4096


class NotTaken(Exception):
    """The scheduler did not accept a report; the message gives the reason."""


class Reporter:
    """Sends the reports of one node.

    Args:
        url: Address of the scheduler's service, without a slash at its end.
        token: File with the token; read for each report, since the token is renewed.
    """

    def __init__(self, url: str, node: str, token: Path) -> None:
        self._root, self._node, self._token = f"{url}/api/v1", node, token
        self._client = httpx.Client(timeout=TIMEOUT_S, trust_env=False)

    def send(self, report: NodeReport) -> NodeReportTaken:
        """Send a report. Raises NotTaken."""
        call = Operations.report_node.call(self._node, report)
        try:
            headers = {
                "Authorization": f"Bearer {self._token.read_text().strip()}",
                "Content-Type": "application/json",
            }
            answer = self._client.post(
                f"{self._root}/{call.path}", content=call.body, headers=headers
            )
        except (OSError, httpx.HTTPError) as failed:
            raise NotTaken(f"{type(failed).__name__}: {failed}") from failed
        if answer.status_code != httpx.codes.OK:
            raise NotTaken(f"{answer.status_code}: {answer.text[:MOST_ANSWER]}")
        try:
            return msgspec.json.decode(answer.content, type=NodeReportTaken)
        except msgspec.DecodeError as bad:
            raise NotTaken(f"the answer cannot be read ({bad})") from bad

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
