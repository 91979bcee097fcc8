"""The Hub resumes watching its pods after any outage of the API server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes_asyncio.client.exceptions import ApiException
from kubespawner import reflector
from kubespawner.spawner import PodReflector

from benchpool_spawner import kube_watching
from benchpool_spawner.kube_watching import untiring
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.slow

AWAY = 40
"""Number of failed attempts: several times a reflector's limit."""


class Hurried:
    """``asyncio`` for a reflector, with pauses that take no time."""

    def __init__(self) -> None:
        self.paused_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        self.paused_s += seconds
        await asyncio.sleep(0)


class Answer:
    ok = True

    async def read(self) -> bytes:
        return b'{"metadata": {"resourceVersion": "7"}, "items": [%s]}' % (
            b'{"metadata": {"namespace": "n", "name": "later"}}'
        )


class Refused(Answer):
    ok = False
    reason = "Forbidden"

    def __init__(self, status: int) -> None:
        self.status = status

    async def json(self) -> dict[str, str]:
        return {"message": "pods is forbidden"}


class ApiServer:
    """API server that answers ``first`` requests, fails ``AWAY`` times, and then recovers."""

    def __init__(self, first: int = 1, refusal: int | None = None) -> None:
        self.first = first
        self.refusal = refusal
        self.asked = 0
        self.back = asyncio.Event()

    async def list_namespaced_pod(self, **asked: Any) -> Answer:
        self.asked += 1
        if self.refusal is not None:
            return Refused(self.refusal)
        if self.first < self.asked <= self.first + AWAY:
            raise ConnectionRefusedError("nobody listens")
        if self.asked > self.first + AWAY and "timeout_seconds" in asked:
            self.back.set()
            await asyncio.Event().wait()  # a watch without events
        return Answer()


async def watch_through(kind: type[PodReflector], api: ApiServer, **settings: Any) -> PodReflector:
    watching = kind(namespace="n", labels={"component": "x"}, **settings)
    watching.api = api
    try:
        await watching.start()
    except ApiException:
        watching.first_load_future.exception()  # already reported
        raise
    return watching


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> Hurried:
    made = Hurried()
    monkeypatch.setattr(reflector, "asyncio", made)
    monkeypatch.setattr(reflector, "shared_client", lambda _: SimpleNamespace())
    return made


@pytest.mark.expected_errors("Error when watching resources", "never recovered, giving up")
def test_pod_watch_recovers_after_repeated_failures(hurried: Hurried) -> None:
    given_up: list[str] = []

    async def run() -> None:
        api = ApiServer()
        watching = await watch_through(
            untiring(PodReflector), api, on_failure=lambda: given_up.append("the Hub ends")
        )
        watching.resources = {}
        await asyncio.wait_for(api.back.wait(), 120)
        await until_async(lambda: "n/later" in watching.pods)
        await watching.stop()
        assert watching.watch_task is None

    asyncio.run(run())
    assert hurried.paused_s > 120
    assert given_up == []


def test_hub_start_waits_for_api_server(hurried: Hurried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kube_watching, "asyncio", hurried)

    async def run() -> None:
        api = ApiServer(first=0)
        watching = await watch_through(untiring(PodReflector), api)
        assert "n/later" in watching.pods
        assert api.asked > AWAY
        await api.back.wait()
        await watching.stop()

    asyncio.run(run())


@pytest.mark.expected_errors(
    "An error occurred when calling Kubernetes API", "Initial list of pods failed"
)
def test_forbidden_pod_list_fails_immediately(hurried: Hurried) -> None:
    async def run() -> None:
        api = ApiServer(refusal=403)
        with pytest.raises(ApiException, match="Forbidden"):
            await watch_through(untiring(PodReflector), api)
        assert api.asked == 1

    asyncio.run(run())


@pytest.mark.expected_errors("Error when watching resources", "never recovered, giving up")
def test_kubespawner_reflector_gives_up(hurried: Hurried) -> None:
    async def run() -> None:
        watching = await watch_through(PodReflector, ApiServer())
        await asyncio.wait_for(watching.watch_task, 120)

    asyncio.run(run())
    assert 50 < hurried.paused_s < 60
