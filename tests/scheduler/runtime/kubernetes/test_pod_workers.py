"""Workers in real pods: the agent runs the bundle, and its log outlives the pod."""

from __future__ import annotations

import tarfile
from dataclasses import replace

import pytest

from benchpool_cluster import pods
from benchpool_scheduler.gate import Backend
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import EndedBy, WorkerProgress
from benchpool_scheduler.service.jobs.serving import readiness
from benchpool_support import direct
from benchpool_support.gate_stage import staged
from benchpool_support.pods import launches, pause
from benchpool_support.real_pods import Bundle, RealStand
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes

HELLO = """
import os, sys, pathlib, helper
print("hello from", helper.WHO, "in", os.getcwd())
for name in sorted(os.environ):
    print(name, "=", os.environ[name])
pathlib.Path(os.environ["BENCHPOOL_OUTPUT_DIR"], "result.txt").write_text("42")
pathlib.Path("made.txt").write_text("beside the code")
sys.exit(int(sys.argv[1]))
"""

SAVE = """
import json, os, pathlib, sys, time
saved = pathlib.Path(os.environ["BENCHPOOL_CHECKPOINT_DIR"], "step")
step = int(saved.read_text()) if saved.exists() else 0
print("attempt", os.environ["BENCHPOOL_ATTEMPT"], "begins at", step, flush=True)
notice = pathlib.Path(os.environ["BENCHPOOL_NOTICE_FILE"])
while step < 1000 + int(os.environ["BENCHPOOL_ATTEMPT"] == "1") * 10**9:
    step += 1
    pathlib.Path(os.environ["BENCHPOOL_PROGRESS_FILE"]).write_text('{"fraction": 0.5}')
    if notice.exists():
        print("told", json.loads(notice.read_text())["text"], flush=True)
        saved.write_text("990")
        sys.exit(9)
    time.sleep(0.01)
print("done at", step, flush=True)
"""

COUNT = """
import time
for number in range(40):
    print(number, flush=True)
    time.sleep(0.2)
"""

MEET = """
import os, socket, sys, time
rank, world = int(os.environ["NODE_RANK"]), int(os.environ["NNODES"])
where = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    server = socket.create_server(("", where[1]))
    total = 0
    peers = []
    for _ in range(world - 1):
        peer, _ = server.accept()
        peers.append(peer)
        total += int(peer.recv(16))
    for peer in peers:
        peer.sendall(str(total).encode())
else:
    while True:
        try:
            peer = socket.create_connection(where, 5)
            break
        except OSError:
            time.sleep(0.2)
    peer.sendall(str(rank).encode())
    total = int(peer.recv(16))
print("sum", total, "of", os.environ["WORLD_SIZE"], flush=True)
"""


async def test_worker_runs_bundle_and_log_outlives_pod(real: RealStand) -> None:
    bundle = Bundle(train_py=HELLO, helper_py="WHO = 'helper'")
    real.bundle.add(bundle)
    (launch,) = launches(
        [("node-1", (0, 1))], argv=("python3", "train.py", "3"), files=bundle.files
    )
    (worker,) = await real.run([launch])
    (end,) = await real.ended(worker)
    assert (end.exit_code, end.by) == (3, EndedBy.ITSELF)
    log = await real.log(worker)
    assert "hello from helper in /benchpool/worker/files" in log
    assert "BENCHPOOL_USER = susan" in log
    assert "NPROC_PER_NODE = 2" in log
    devices = next(line for line in log.splitlines() if line.startswith("CUDA_VISIBLE_DEVICES"))
    assert devices.count("GPU-") == 2
    assert "KUBERNETES_" not in log
    (pod,) = await real.pods(worker.job)
    await real.connection.delete(
        kinds.PODS, pod["metadata"]["name"], namespace=real.settings.namespace, grace_s=0
    )
    await real.until_pods(worker.job, 0)
    assert await real.log(worker) == log


FAILS = """
import json
def fit(text):
    return json.loads(text)["loss"]
fit("{}")
"""


async def test_failure_in_pod_names_exception_and_location(real: RealStand) -> None:
    bundle = Bundle(train_py=FAILS)
    real.bundle.add(bundle)
    (launch,) = launches([("node-1", (0,))], argv=("python3", "train.py"), files=bundle.files)
    (worker,) = await real.run([launch])
    (end,) = await real.ended(worker)
    assert (end.exit_code, end.by) == (1, EndedBy.ITSELF)
    assert end.text == "it failed with KeyError: 'loss' (train.py, line 4)"


async def test_results_of_a_finished_worker_are_sent(real: RealStand) -> None:
    bundle = Bundle(train_py=HELLO, helper_py="WHO = 'helper'")
    real.bundle.add(bundle)
    (launch,) = launches([("node-2", (0,))], argv=("python3", "train.py", "0"), files=bundle.files)
    (worker,) = await real.run([launch])
    (end,) = await real.ended(worker)
    assert end.exit_code == 0
    packed = real.runtime.agent_api.carried(worker.job, "results", 0)
    with tarfile.open(packed) as tar:
        assert sorted(tar.getnames()) == ["made.txt", "result.txt"]


async def test_paused_worker_resumes_on_another_node(real: RealStand) -> None:
    bundle = Bundle(train_py=SAVE)
    real.bundle.add(bundle)
    (first,) = launches([("node-1", (0,))], argv=("python3", "train.py"), files=bundle.files)
    first.env["BENCHPOOL_ATTEMPT"] = "1"  # type: ignore[index]
    (worker,) = await real.run([first])
    await real.until_logged(worker, "begins at 0")
    await real.runtime.stop(worker, pause(10.0))
    (end,) = await real.ended(worker)
    assert (end.by, end.exit_code) == (EndedBy.NOTICE, 9)
    assert "told joe's job needs the room" in await real.log(worker)
    assert any(isinstance(e, WorkerProgress) and e.fraction == 0.5 for e in real.events)
    (second,) = launches(
        [("node-2", (3,))],
        job=worker.job,
        attempt=2,
        argv=("python3", "train.py"),
        files=bundle.files,
    )
    second.env["BENCHPOOL_ATTEMPT"] = "2"  # type: ignore[index]
    (again,) = await real.run([second])
    (done,) = await real.ended(again)
    assert done.exit_code == 0
    assert await real.log(again) == "attempt 2 begins at 990\ndone at 1000\n"


async def test_gang_across_nodes_connects_by_name(real: RealStand) -> None:
    bundle = Bundle(train_py=MEET)
    real.bundle.add(bundle)
    gang = launches(
        [("node-1", (0,)), ("node-2", (0,)), ("node-2", (1,))],
        argv=("python3", "train.py"),
        files=bundle.files,
    )
    workers = await real.run(gang)
    ended = await real.ended(*workers)
    assert [end.exit_code for end in ended] == [0, 0, 0]
    for worker in workers:
        assert await real.log(worker) == "sum 3 of 3\n"


async def test_worker_runs_while_scheduler_is_down(real: RealStand) -> None:
    bundle = Bundle(train_py=COUNT)
    real.bundle.add(bundle)
    (launch,) = launches([("node-1", (0,))], argv=("python3", "train.py"), files=bundle.files)
    (worker,) = await real.run([launch])
    await real.until_logged(worker, "2\n")
    await real.hush()
    await real.until_in_pod_log(worker, "25\n")
    real.serve()
    (end,) = await real.ended(worker)
    assert end.exit_code == 0
    assert (await real.log(worker)).split() == [str(number) for number in range(40)]


async def test_service_in_pod_answers_through_gateway(
    real: RealStand,
) -> None:
    (launch,) = launches(
        [("node-1", (0,))],
        argv=("python3", "-m", "http.server", "8000", "--bind", real.runtime.listen),
        serves=8000,
    )
    (worker,) = await real.run([launch])
    host = real.runtime.host_of(worker)
    assert host is not None

    async def answers() -> bool:
        return await readiness.answers(readiness.ReplicaPlace(host, 8000, "/"))

    await until_async(answers)
    async with staged() as stage, direct.AsyncClient() as client:
        stage.directory.set("web", backends=(Backend(worker.job, host, 8000),))
        page = await client.get(f"{stage.url}s/web/", headers={"Authorization": "token susan"})
        assert (page.status_code, "Directory listing" in page.text) == (200, True)
    await real.runtime.stop(worker, pause(5.0))
    await real.ended(worker)
    assert real.runtime.host_of(worker) is None


async def test_drained_pod_saves_and_is_lost(real: RealStand) -> None:
    bundle = Bundle(train_py=SAVE)
    real.bundle.add(bundle)
    (launch,) = launches([("node-1", (0,))], argv=("python3", "train.py"), files=bundle.files)
    launch.env["BENCHPOOL_ATTEMPT"] = "1"  # type: ignore[index]
    (worker,) = await real.run([launch])
    await real.until_logged(worker, "begins at 0")
    (pod,) = await real.pods(worker.job)
    await real.connection.delete(
        kinds.PODS, pod["metadata"]["name"], namespace=real.settings.namespace
    )
    (end,) = await real.ended(worker)
    assert end.by is EndedBy.LOST
    assert real.runtime.agent_api.carried(worker.job, "checkpoint", 0).exists()


async def test_unpullable_image_is_rejected_with_its_name(
    real: RealStand,
) -> None:
    (launch,) = launches([("node-1", (0,))], image="benchpool.invalid/nothing:1")
    await real.start([launch])
    (end,) = await real.ended(launch.worker)
    assert end.by in (EndedBy.NOT_TAKEN, EndedBy.COULD_NOT_START)
    assert "benchpool.invalid/nothing:1" in str(end.text)


async def test_unpullable_agent_image_is_attributed_to_node(
    real: RealStand,
) -> None:
    await real.close()
    settings = replace(real.settings, agent_image="benchpool.invalid/agent:1", pull_s=4.0)
    without = RealStand(real.connection, settings, real.state, real.at)
    await without.open()
    real.others.append(without)
    (launch,) = launches([("node-1", (0,))])
    await without.start([launch])
    (end,) = await without.ended(launch.worker)
    assert end.by is EndedBy.NOT_TAKEN
    assert str(end.text).startswith(
        "node-1 cannot pull the agent's image benchpool.invalid/agent:1 ("
    )


async def test_missing_file_is_reported_before_start(real: RealStand) -> None:
    lacking = Bundle(train_py="print('never')")
    (launch,) = launches([("node-1", (0,))], argv=("python3", "train.py"), files=lacking.files)
    await real.start([launch])
    (end,) = await real.ended(launch.worker)
    assert end.by is EndedBy.COULD_NOT_START
    assert "missing on the server" in str(end.text)


async def test_time_limit_ends_worker(real: RealStand) -> None:
    (launch,) = launches(
        [("node-1", (0,))], argv=("python3", "-c", "import time; time.sleep(99)"), time_limit_s=1.0
    )
    (worker,) = await real.run([launch])
    (end,) = await real.ended(worker)
    assert end.by is EndedBy.TIME_LIMIT
    assert not real.runtime.agent_api.carried(worker.job, "results", 0).exists()


async def test_restarted_scheduler_gets_complete_log_and_end(real: RealStand) -> None:
    bundle = Bundle(train_py=COUNT)
    real.bundle.add(bundle)
    (launch,) = launches([("node-2", (0,))], argv=("python3", "train.py"), files=bundle.files)
    (worker,) = await real.run([launch])
    await real.until_logged(worker, "2\n")
    await real.hush()
    after = await real.restarted([worker])
    after.serve()
    await after.started(worker)
    (end,) = await after.ended(worker)
    assert end.exit_code == 0
    assert (await after.log(worker)).split() == [str(number) for number in range(40)]
    await after.hush()


async def test_later_worker_gets_config_of_first_worker(
    real: RealStand,
) -> None:
    bundle = Bundle(train_py=COUNT)
    real.bundle.add(bundle)
    words, files = ("python3", "train.py"), bundle.files
    (first,) = await real.run(launches([("node-1", (0,))], argv=words, files=files))
    places = [("node-1", (0,)), ("node-2", (0,))]
    (second,) = await real.run(launches(places, job=first.job, argv=words, files=files)[1:])
    ended = await real.ended(first, second)
    assert [end.exit_code for end in ended] == [0, 0]
    assert (await real.log(first)).split() == (await real.log(second)).split()


async def test_pod_rejected_by_kubelet_is_not_taken(
    real: RealStand, real_space: pods.Space
) -> None:
    everything = pods.python_pod("foreign", pods.WAIT, gpus=4, node="node-1")
    (refused,) = launches([("node-1", (0,))], argv=("true",))
    cluster = real_space.cluster
    with pods.space(cluster) as elsewhere:
        elsewhere.run(everything)
        # A kube-scheduler that has not yet seen the other pod binds in the same way.
        cluster.processes.freeze("kube-scheduler")
        try:
            await real.start([refused])
            await real.until_pods(refused.worker.job, 1)
            name = (await real.pods(refused.worker.job))[0]["metadata"]["name"]
            await real.until_pod(name, lambda pod: "schedulingGates" not in pod["spec"])
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name},
                "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
            }
            real_space.create(f"pods/{name}/binding", binding)
            (end,) = await real.ended(refused.worker)
        finally:
            cluster.processes.thaw("kube-scheduler")
    assert (end.by, end.exit_code) == (EndedBy.NOT_TAKEN, None)
    assert str(end.text).startswith("node-1 rejected it (UnexpectedAdmissionError): ")
    (other,) = launches([("node-1", (0,))], argv=("true",))
    (done,) = await real.ended(*await real.run([other]))
    assert done.exit_code == 0
