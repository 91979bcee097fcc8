"""Shells that a worker's agent opens: environment, terminal and end with the worker.

The agent, the supervisor, the shell and the requests between them are those of a pod. Only the
folders differ.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import Launch, Notice
from benchpool_scheduler.runtime.kubernetes import agent_config
from benchpool_scheduler.runtime.kubernetes.agent_shells import AgentShell
from benchpool_scheduler.worker import log_reader
from benchpool_support.agent_processes import AgentProcess
from benchpool_support.pods import launches, settings_for
from benchpool_support.real_pods import Bundle
from benchpool_support.served_agents import TOKENS, WORKER, ServedAgents
from benchpool_support.typed_shells import CATCHES, CATCHING, CAUGHT, TypedShell, ready
from benchpool_support.waiting import until_async

SLEEPS = ("python3", "-c", "print('up', flush=True); import time; time.sleep(1000)")

Started = Callable[[Launch], AgentProcess]


class HeldBundle(Bundle):
    """Bundle whose contents are delivered only after an event is set."""

    def __init__(self) -> None:
        super().__init__(train_py="print(1)")
        self.let = asyncio.Event()

    async def read(self, job: str, sha256: str) -> AsyncIterator[bytes]:
        await self.let.wait()
        async for piece in super().read(job, sha256):
            yield piece


@pytest.fixture
def held() -> HeldBundle:
    """Return the bundle of the test's job."""
    return HeldBundle()


@pytest.fixture
async def served(tmp_path: Path, held: HeldBundle) -> AsyncIterator[ServedAgents]:
    """Yield the agent API."""
    made = ServedAgents(tmp_path / "state", held)
    yield made
    await made.close()


@pytest.fixture
async def started(served: ServedAgents, tmp_path: Path) -> AsyncIterator[Started]:
    """Yield a function that starts an agent; agents still running are stopped at the end."""
    agents = []

    def start(launch: Launch) -> AgentProcess:
        config = agent_config.agent_config(launch, settings_for("jobs", agent_url=served.url))
        agent = AgentProcess(tmp_path / "pod", config, 0, TOKENS.of(WORKER))
        agents.append(agent)
        agent.start()
        return agent

    yield start
    for agent in agents:
        served.agent_api.notify(WORKER, cancel())
        await asyncio.to_thread(agent.end)


@pytest.fixture
async def agent(served: ServedAgents, started: Started) -> AgentProcess:
    """Return an agent whose command runs."""
    agent = started(one(env={"PATH": os.environ["PATH"], "MARK": "m"}))
    await until_async(lambda: log_reader.read(served.folders.worker(WORKER), 0, 9)[1] == b"up\n")
    return agent


def one(**more: object) -> Launch:
    (launch,) = launches([("node-1", (0, 1))], job=WORKER.job, argv=SLEEPS)
    return replace(launch, **more)  # type: ignore[arg-type]


def cancel() -> Notice:
    return Notice("cancel", 1.0, "susan", "enough")


async def opened(served: ServedAgents) -> AgentShell:
    return await served.agent_api.shell(WORKER, 30, 100, "xterm")


async def entered(served: ServedAgents) -> TypedShell:
    return await ready(await opened(served))


async def pid_of(shell: TypedShell) -> int:
    await shell.channel.write(b"echo p''id=$$ so''far\n")
    await shell.until(b" sofar")
    return int(shell.printed.rpartition(b"pid=")[2].partition(b" ")[0])


async def test_shell_has_environment_folder_and_terminal_size_of_worker(
    served: ServedAgents, agent: AgentProcess
) -> None:
    shell = await entered(served)
    await shell.channel.write(b'echo "<$MARK $CUDA_VISIBLE_DEVICES $(pwd) $(stty size) $TERM>"\n')
    await shell.until(f"<m 0,1 {agent.pod}/benchpool/worker/files 30 100 xterm>".encode())
    shell.channel.resize(10, 50)
    await shell.channel.write(b'until test "$(stty size)" = "10 50"; do :; done; exit 7\n')
    assert await shell.end() == 7


async def test_ctrl_c_interrupts_command_and_worker_end_closes_shell(
    served: ServedAgents, agent: AgentProcess
) -> None:
    shell = await entered(served)
    await shell.channel.write(CATCHES)
    await shell.until(CATCHING)
    await shell.channel.write(b"\x03")
    await shell.until(CAUGHT)
    served.agent_api.notify(WORKER, cancel())
    assert await shell.end() is None
    await asyncio.to_thread(agent.end)


async def test_hang_up_ends_shell_and_keeps_worker(
    served: ServedAgents, agent: AgentProcess
) -> None:
    shell = await entered(served)
    pid = await pid_of(shell)
    await shell.channel.write(b"sleep 1000\n")
    await shell.channel.close()
    assert await shell.channel.read() == b""
    assert not os.path.exists(f"/proc/{pid}")
    await entered(served)


async def test_shell_ignoring_hang_up_is_killed(served: ServedAgents, agent: AgentProcess) -> None:
    shell = await entered(served)
    pid = await pid_of(shell)
    await shell.channel.write(b"trap '' HUP; echo de''af; while :; do sleep 1; done\n")
    await shell.until(b"deaf")
    await shell.channel.close()
    await until_async(lambda: not os.path.exists(f"/proc/{pid}"))


async def test_long_output_arrives_in_order(served: ServedAgents, agent: AgentProcess) -> None:
    shell = await entered(served)
    await shell.channel.write(b"stty -echo; PS1=; echo be''gin; seq 100000; echo e''nd\n")
    await shell.until(b"begin")
    await shell.until(b"end\r\n")
    numbers = shell.printed.partition(b"begin\r\n")[2].partition(b"end")[0].split()
    assert numbers == [b"%d" % number for number in range(1, 100_001)]


async def test_shell_with_blocked_input_can_be_closed(
    served: ServedAgents, agent: AgentProcess
) -> None:
    shell = await entered(served)
    pid = await pid_of(shell)
    await shell.channel.write(b"stty raw -echo; echo ra''wly; sleep 1000\n")
    await shell.until(b"rawly")
    for _ in range(4):
        await shell.channel.write(b"x" * 30_000)
    await shell.channel.close()
    await until_async(lambda: not os.path.exists(f"/proc/{pid}"))


async def test_shell_unknown_to_restarted_scheduler_hangs_up(
    served: ServedAgents, agent: AgentProcess
) -> None:
    shell = await entered(served)
    pid = await pid_of(shell)
    await served.restart()
    await until_async(lambda: not os.path.exists(f"/proc/{pid}"))
    await entered(served)


async def test_concurrent_shells_are_separate(served: ServedAgents, agent: AgentProcess) -> None:
    first, second = await asyncio.gather(entered(served), entered(served))
    assert await pid_of(first) != await pid_of(second)
    await first.channel.write(b"exit 3\n")
    assert await first.end() == 3
    await second.channel.write(b"exit 4\n")
    assert await second.end() == 4


async def test_shell_before_command_start_is_rejected(
    served: ServedAgents, started: Started, held: HeldBundle
) -> None:
    started(one(files=held.files))
    with pytest.raises(OSError, match="the worker's command has not started yet"):
        await opened(served)
    held.let.set()
    await until_async(lambda: log_reader.read(served.folders.worker(WORKER), 0, 9)[1] == b"up\n")
    await entered(served)


async def test_shell_in_ended_worker_or_old_agent_is_rejected(
    served: ServedAgents,
) -> None:
    async with served.client() as of_an_earlier_version:
        await of_an_earlier_version.get("notice", params={"wait_s": 0, "looked": 0})
    with pytest.raises(OSError, match="its agent is too old for this"):
        await opened(served)
    served.worker_of(1).over = True
    with pytest.raises(ProcessLookupError, match="it does not run"):
        await opened(served)


async def test_restarted_scheduler_reads_stacks_of_worker(
    served: ServedAgents, agent: AgentProcess
) -> None:
    for _ in range(2):
        assert (await served.agent_api.stacks(WORKER)).processes
    await served.restart()
    assert (await served.agent_api.stacks(WORKER)).processes
