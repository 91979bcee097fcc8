"""The agent of a node may report on its own node only, and only agents may report."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from benchpool_scheduler.contract.node_report import NodeReport, ReportedGpu
from benchpool_scheduler.contract.operation import MIB, Who
from benchpool_scheduler.contract.operations import OPERATIONS, Operations
from benchpool_scheduler.node_agent.reporting import NotTaken, Reporter
from benchpool_scheduler.telemetry import Sampling
from benchpool_scheduler.telemetry.node_reports import NodeReports
from benchpool_support.serving import Served, served

NODES = {"token-of-n0": "n0", "token-of-n1": "n1"}


class ScriptedNodes:
    """Nodes that accept the tokens above."""

    async def node(self, token: str) -> str | None:
        return NODES.get(token)


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    reports = NodeReports(lambda: (), 30.0)
    sampling = Sampling(reports, 30.0, workers=reports, reports=reports)
    state = tmp_path_factory.mktemp("state")
    with served(state, nodes=ScriptedNodes(), sampling=sampling) as running:
        yield running


def post(at: Served, node: str, token: str, content: bytes = b'{"look":1}') -> httpx.Response:
    with httpx.Client(trust_env=False) as client:
        return client.post(
            f"{at.url}/api/v1/nodes/{node}/report",
            content=content,
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )


def test_agent_gets_time_of_next_report(
    pool: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    token = tmp_path_factory.mktemp("token") / "token"
    token.write_text("token-of-n0\n")
    reporter = Reporter(pool.url, "n0", token)
    report = NodeReport(7, [ReportedGpu("GPU-a", "nvidia.com/gpu", span_s=10.0, activity=0.5)])
    assert reporter.send(report).every_s == 30.0
    token.write_text("another")  # the file is read on each request
    with pytest.raises(NotTaken, match=r"401: .*token of the agent of a node"):
        reporter.send(report)
    token.unlink()
    with pytest.raises(NotTaken, match="FileNotFoundError"):
        reporter.send(report)
    reporter.close()


def test_agent_cannot_report_for_another_node(pool: Served) -> None:
    answer = post(pool, "n1", "token-of-n0")
    assert answer.status_code == 403
    assert "The agent of n0 may not report for n1." in answer.text


@pytest.mark.parametrize("token", ["-", "root", "susan", "token-of-n9"])
def test_report_without_agent_token_is_rejected(pool: Served, token: str) -> None:
    assert post(pool, "n0", token).status_code == 401


def test_agent_token_opens_no_other_path(pool: Served) -> None:
    addresses = {one.pattern for one in OPERATIONS if one.method == "GET"}
    plain = {path for path in addresses if "(" not in path}
    open_to_all = {one.pattern for one in OPERATIONS if one.who is Who.PUBLIC}
    with httpx.Client(trust_env=False) as client:
        for path in plain - open_to_all:
            answer = client.get(
                f"{pool.url}/api/v1/{path}", headers={"Authorization": "Bearer token-of-n0"}
            )
            assert answer.status_code == 401, path


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"look":1,"more":2}', 422),
        (b'{"look":1,"gpus":[{"uuid":"GPU-a","resource":"x","activity":1.5}]}', 422),
        (b'{"look":1,"gpus":[{"uuid":"GPU-a","resource":"x","span_s":0}]}', 422),
        (b'{"look":1,"uses":[{"pod":"u","span_s":1,"cpu_s":-1}]}', 422),
        (b'{"look":-1}', 422),
        (b'{"look":1,"problem":"' + b"x" * 501 + b'"}', 422),
        (b'{"look":1,"pods":[' + b",".join([b'"u"'] * 1025) + b"]}", 422),
        (b" " * (MIB + 1), 413),
    ],
)
def test_invalid_or_oversized_report_is_rejected(pool: Served, body: bytes, status: int) -> None:
    assert post(pool, "n0", "token-of-n0", body).status_code == status


def test_report_is_not_audited() -> None:
    assert not Operations.report_node.audited


def test_report_is_rejected_when_agents_are_disabled(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with served(tmp_path_factory.mktemp("other"), nodes=ScriptedNodes()) as running:
        answer = post(running, "n0", "token-of-n0")
        assert answer.status_code == 404
        assert "telemetry.agent.enabled is off" in answer.text
