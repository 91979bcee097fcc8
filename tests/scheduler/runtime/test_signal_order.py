"""The main process of a worker gets SIGTERM first, while its helper processes still run."""

from __future__ import annotations

import shlex
import sys

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker.supervisor.schedule import ALL, KILL, LEADER, REST, Stop
from benchpool_support.workers import Listener, pause, python_launch, until_logged, whole_log

FED = """
import multiprocessing, os, signal, sys

def feed(queue):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        queue.put(1)

told = []
signal.signal(signal.SIGTERM, lambda *_: told.append(1))
queue = multiprocessing.get_context("fork").Queue(1)
helper = multiprocessing.get_context("fork").Process(target=feed, args=(queue,), daemon=True)
helper.start()
print("up", flush=True)
while not told:
    queue.get(timeout=30)
for _ in range(100):
    queue.get(timeout=30)  # the step that is under way needs its data
print("saved", flush=True)
os._exit(75)
"""

CHILD = """
import signal, sys, time
def told(*_):
    print("child saved", flush=True)
    sys.exit(1)
signal.signal(signal.SIGTERM, told)
print("up", flush=True)
time.sleep(300)
"""

DEAF_WITH_CHILD = f"""
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}],
                         preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
child.wait()
print("child ended", flush=True)
sys.exit(7)
"""


async def test_helper_processes_live_until_main_process_saves(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(FED)
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(300))
    assert await listener.exit_of(launch.worker) == (75, EndedBy.NOTICE)
    assert b"saved" in await whole_log(runtime, launch.worker)


async def test_shell_child_is_signalled_after_shell_ends(
    runtime: LocalRuntime, listener: Listener
) -> None:
    python = shlex.quote(sys.executable)
    launch = python_launch("", argv=("sh", "-c", f"{python} -c '{CHILD}'; exit 0"))
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(300))
    assert await listener.exit_of(launch.worker) == (143, EndedBy.NOTICE)
    assert b"child saved" in await whole_log(runtime, launch.worker)


async def test_child_of_surviving_process_is_signalled_within_grace_period(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(DEAF_WITH_CHILD)
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(60))
    assert await listener.exit_of(launch.worker) == (7, EndedBy.NOTICE)
    log = await whole_log(runtime, launch.worker)
    assert b"child saved" in log
    assert b"child ended" in log


moments = st.lists(st.floats(0, 50), min_size=1, max_size=20).map(sorted)


@given(
    moments, st.floats(1, 40), st.sampled_from(["pause", "cancel"]), st.floats(0, 50), st.booleans()
)
def test_sigterm_is_sent_once_and_before_kill(
    looks: list[float], grace_s: float, kind: str, ends_at: float, shortened: bool
) -> None:
    stop = Stop(kind, "notice", grace_s, 0.0)
    if shortened:
        stop.hasten(grace_s / 2, looks[0])
    steps: list[str] = []
    for now in looks:
        while (step := stop.step(now, leads=now < ends_at)) is not None:
            steps.append(step)
            assert (step == KILL) == (now >= stop.kill_at)
            assert now >= stop.term_at
            if step == KILL:
                break
        if steps and steps[-1] == KILL:
            break
        assert stop.due_at() >= min(now, stop.kill_at) or now >= ends_at
    before = [step for step in steps if step != KILL]
    assert before in ([], [ALL], [LEADER], [LEADER, REST])
