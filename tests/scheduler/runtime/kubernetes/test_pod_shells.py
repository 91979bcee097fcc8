"""Shells and stacks of workers in real pods, through their agents and without the Kubernetes
API.
"""

from __future__ import annotations

import pytest

from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_support.pods import launches, pause
from benchpool_support.real_pods import Bundle, RealStand
from benchpool_support.typed_shells import CATCHES, CATCHING, CAUGHT, TypedShell, ready

pytestmark = pytest.mark.kubernetes

SLEEPS = """
import time
def wait_for_ever():
    print("up", flush=True)
    time.sleep(3600)
wait_for_ever()
"""


async def runs(real: RealStand) -> WorkerId:
    """Start a worker that sleeps; it needs no GPU."""
    bundle = Bundle(train_py=SLEEPS)
    real.bundle.add(bundle)
    (launch,) = launches([("node-1", ())], argv=("python3", "train.py"), files=bundle.files)
    (worker,) = await real.run([launch])
    await real.until_logged(worker, "up")
    return worker


async def entered(real: RealStand, worker: WorkerId) -> TypedShell:
    return await ready(await real.runtime.shell(worker, 30, 100, "xterm"))


async def test_shell_in_pod_follows_terminal_and_ends_with_worker(
    real: RealStand,
) -> None:
    worker = await runs(real)
    shell = await entered(real, worker)
    await shell.channel.write(b'echo "<$(id -u) $(pwd) $(stty size) $TERM $BENCHPOOL_USER>"\n')
    await shell.until(b"<1000 /benchpool/worker/files 30 100 xterm susan>")
    shell.channel.resize(10, 50)
    await shell.channel.write(b'until test "$(stty size)" = "10 50"; do :; done; exit 7\n')
    assert await shell.end() == 7
    other = await entered(real, worker)
    await other.channel.write(CATCHES)
    await other.until(CATCHING)
    await other.channel.write(b"\x03")
    await other.until(CAUGHT)
    await real.runtime.stop(worker, pause(5.0))
    assert await other.end() is None
    (end,) = await real.ended(worker)
    assert end.by is EndedBy.NOTICE
    with pytest.raises(ProcessLookupError):
        await real.runtime.shell(worker, 30, 100, "xterm")


async def test_restarted_scheduler_opens_shells_and_reads_stacks(
    real: RealStand,
) -> None:
    worker = await runs(real)
    await entered(real, worker)
    for _ in range(2):
        assert "wait_for_ever" in str(await real.runtime.stacks(worker))
    await real.hush()
    after = await real.restarted([worker])
    after.serve()
    await after.started(worker)
    await (await entered(after, worker)).channel.write(b"exit 3\n")
    assert "wait_for_ever" in str(await after.runtime.stacks(worker))
    await after.runtime.stop(worker, pause(5.0))
    await after.ended(worker)
    await after.hush()
