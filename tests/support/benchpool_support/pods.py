"""The Kubernetes runtime in tests: open it, call it, and record its events."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchpool_scheduler.kube import Connection, KubeUnavailable, kinds
from benchpool_scheduler.runtime import (
    Device,
    Launch,
    Notice,
    WorkerEnded,
    WorkerEvent,
    WorkerId,
    WorkerStarted,
)
from benchpool_scheduler.runtime.kubernetes import ClusterSettings, KubernetesRuntime
from benchpool_scheduler.service.process.identifiers import new_job_id
from benchpool_support.waiting import PATIENCE_S, until_async

SECRET = b"of tests" * 4
KWOK = {"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}


def settings_for(namespace: str, **more: Any) -> ClusterSettings:
    """Return settings for nodes without containers; a real site has longer timeouts."""
    quick: dict[str, Any] = {
        "tolerations": (KWOK,),
        "unschedulable_s": 15.0,
        "pull_s": 30.0,
        "refused_s": 60.0,
        "dip_s": 15.0,
    }
    return ClusterSettings(
        **{
            "namespace": namespace,
            "image": "job",
            "agent_image": "agent",
            "agent_url": "http://127.0.0.1:1/workers",
            **quick,
            **more,
        }
    )


def launches(
    places: Sequence[tuple[str, Iterable[int]]],
    *,
    job: str | None = None,
    attempt: int = 1,
    **more: Any,
) -> list[Launch]:
    """Return the launches of a job whose workers hold these GPUs, by node and index."""
    job = job or new_job_id()
    nodes = tuple(node for node, _ in places)
    own = {"BENCHPOOL_JOB_ID": job, "BENCHPOOL_USER": "susan", "BENCHPOOL_PROJECT": "vision"}
    base = Launch(
        WorkerId(job, attempt, 0), ("python3", "train.py"), own, (), None, nodes=nodes, grace_s=5.0
    )
    return [
        replace(
            base,
            worker=WorkerId(job, attempt, index),
            gpus=tuple(f"{node}/{gpu}" for gpu in gpus),
            **more,
        )
        for index, (node, gpus) in enumerate(places)
    ]


class Stand:
    """Runtime and its events.

    Attributes:
        events: All events in order.
    """

    def __init__(
        self,
        connection: Connection,
        settings: ClusterSettings,
        state: Path,
        nodes: Sequence[str] = (),
        epoch: int = 1,
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.state = state
        self.others: list[Stand] = []
        self.nodes = nodes
        self.events: list[WorkerEvent] = []
        self.runtime = KubernetesRuntime(
            connection, settings, state=state, secret=SECRET, epoch=lambda: epoch
        )
        self._news = asyncio.Condition()
        self._listening: asyncio.Task[None] | None = None

    async def open(self, expected: Sequence[WorkerId] = ()) -> None:
        """Open the runtime and start to listen for events."""
        await self.runtime.open(expected)
        self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Close the runtime; its workers continue."""
        for other in self.others:
            await other.close()
        self.others.clear()
        if self._listening is not None:
            await self.runtime.close()
            await self._listening
            self._listening = None

    async def restarted(self, expected: Sequence[WorkerId]) -> Stand:
        """Close this one and open another in its place."""
        await self.close()
        return await self.beside(expected)

    async def beside(self, expected: Sequence[WorkerId] = ()) -> Stand:
        """Open another runtime, which is closed with this one."""
        other = Stand(self.connection, self.settings, self.state, self.nodes)
        await other.open(expected)
        self.others.append(other)
        return other

    def hinder_opening(self) -> None:
        """Prevent this runtime from opening any gate."""

        async def never(*_: object) -> bool:
            return False

        self.runtime.job_writer.open = never  # type: ignore[assignment, method-assign]

    async def start(self, launches: Iterable[Launch]) -> None:
        """Start workers."""
        for launch in launches:
            await self.runtime.start(launch)

    def keep_back_answers(self, kind: kinds.Kind) -> asyncio.Event:
        """Delay the responses to requests that create such objects until the event is set."""
        create, now = self.connection.create, asyncio.Event()

        async def late(of: kinds.Kind, body: object, **more: Any) -> Any:
            made = await create(of, body, **more)
            if of == kind:
                await now.wait()
            return made

        self.connection.create = late  # type: ignore[assignment, method-assign]
        return now

    async def until_pod_of(self, worker: WorkerId) -> None:
        """Wait until the runtime has seen a worker's pod."""

        async def look() -> bool:
            state = self.runtime._registry.state(worker)
            return state is not None and state.pod is not None

        await until_async(look)

    def interrupt_once(self, kind: kinds.Kind) -> None:
        """Simulate an outage of the API server once, when an object of this kind is created."""
        create = self.connection.create
        left = [1]

        async def interrupted(of: kinds.Kind, body: object, **more: Any) -> Any:
            if of == kind and left:
                left.clear()
                raise KubeUnavailable("The API server is away, as a test wants it.")
            return await create(of, body, **more)

        self.connection.create = interrupted  # type: ignore[assignment, method-assign]

    def answer_late(self, kind: kinds.Kind, seconds: float) -> None:
        """Delay the response to each creation of such an object, as a busy API server does."""
        create = self.connection.create

        async def late(of: kinds.Kind, body: object, **more: Any) -> Any:
            if of == kind:
                await asyncio.sleep(seconds)
            return await create(of, body, **more)

        self.connection.create = late  # type: ignore[assignment, method-assign]

    async def started(self, *workers: WorkerId) -> list[WorkerStarted]:
        """Wait until all these have started."""
        return [
            event
            for event in await self._all(workers, WorkerStarted)
            if isinstance(event, WorkerStarted)
        ]

    async def ended(self, *workers: WorkerId) -> list[WorkerEnded]:
        """Wait until all these have ended; return the events in the order of the arguments."""
        events = [e for e in await self._all(workers, WorkerEnded) if isinstance(e, WorkerEnded)]
        return sorted(events, key=lambda event: workers.index(event.worker))

    async def run(self, launches: Sequence[Launch]) -> list[WorkerId]:
        """Start workers and wait until all run."""
        await self.start(launches)
        workers = [launch.worker for launch in launches]
        await self.started(*workers)
        return workers

    async def pods(self, job: str = "") -> list[dict[str, Any]]:
        """Return the pods of a job in the API server, sorted by index."""
        labels = f"benchpool.io/job={job}" if job else None
        listed = await self.connection.list(
            kinds.PODS, namespace=self.settings.namespace, labels=labels
        )
        return sorted(listed.items, key=lambda pod: str(pod["metadata"]["name"]))

    async def until_pods(self, job: str, count: int) -> list[dict[str, Any]]:
        """Wait until a job has ``count`` pods."""

        return await until_async(lambda: self.pods(job), holds=lambda found: len(found) == count)

    async def until_on(self, job: str, nodes: list[str]) -> None:
        """Wait until the pods of a job with open gates are on these nodes, by index.

        Nodes without a kubelet do not report a deleted pod as failed. Its Job therefore creates
        another pod, which stays behind its gate.
        """

        async def look() -> bool:
            pods = await self.pods(job)
            return [pod["spec"]["nodeName"] for pod in pods if "nodeName" in pod["spec"]] == nodes

        await until_async(look)

    async def until_pod(self, name: str, holds: Callable[[Any], bool]) -> dict[str, Any]:
        """Wait until a condition holds for a pod, and return the pod."""
        namespace = self.settings.namespace
        found: dict[str, Any] = await until_async(
            lambda: self.connection.get(kinds.PODS, name, namespace=namespace), holds=holds
        )
        return found

    async def until_seen(self, name: str) -> None:
        """Wait until the runtime has seen a pod."""
        await until_async(
            lambda: [(pod.namespace, pod.name) for pod in self.runtime.seen_pods],
            f"the runtime knows of {name}",
            holds=lambda seen: (self.settings.namespace, name) in seen,
        )

    async def devices(self) -> list[Device]:
        """Return the GPUs of the nodes of this test."""
        return [device for device in await self.runtime.devices() if device.node in self.nodes]

    async def until_devices(self, states: str) -> list[Device]:
        """Wait until the GPUs have the states of these letters: usable, foreign, broken."""
        return await until_async(
            self.devices,
            f"the GPUs are {states}",
            holds=lambda found: "".join(device.state[0] for device in found) == states,
        )

    async def _all(self, workers: Sequence[WorkerId], kind: type[WorkerEvent]) -> list[WorkerEvent]:
        def found() -> list[WorkerEvent]:
            return [e for e in self.events if isinstance(e, kind) and e.worker in workers]

        try:
            async with asyncio.timeout(PATIENCE_S), self._news:
                await self._news.wait_for(lambda: len(found()) >= len(workers))
        except TimeoutError:
            raise AssertionError(f"only {found()} of {workers}; events: {self.events}") from None
        return found()

    async def _listen(self) -> None:
        async for event in self.runtime.events():
            async with self._news:
                self.events.append(event)
                self._news.notify_all()


def pause(grace_s: float = 5.0) -> Notice:
    """Return a notice to pause."""
    return Notice("pause", grace_s, "joe", "joe's job needs the room")


def random_name(beginning: str) -> str:
    """Return a unique name."""
    return f"{beginning}-{secrets.token_hex(4)}"
