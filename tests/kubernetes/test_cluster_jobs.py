"""Jobs over HTTP and by kubectl on an API server; all outcomes are read from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract import LeaseRequest, State
from benchpool_scheduler.errors import Refused
from benchpool_support.pods_of_jobs import command, pods, running
from benchpool_support.replicas import Person, Replica, Site, small_hub
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

JOBS = "/apis/benchpool.io/v1/namespaces/{}/trainingjobs"


def let_end(access: Access, site: Site, pod: dict[str, Any], code: int = 0) -> None:
    """Let the command of a pod end."""
    path = f"/api/v1/namespaces/{site.namespace}/pods/{pod['metadata']['name']}"
    access.patch(path, {"metadata": {"annotations": {"tests/exit": str(code)}}})


def reached(replica: Replica, job: str, state: State) -> None:
    until(lambda: replica.client("ada").job(job).job.state is state)


def written(access: Access, site: Site, name: str) -> dict[str, Any]:
    return access.get(f"{JOBS.format(site.namespace)}/{name}")


def test_job_sent_over_http_survives_scheduler_restart(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    first = site.started()
    job = first.client("susan").submit(command(gpus=2, cpus=1, memory_gib=1))
    (pod,) = running(access, site, job.id)
    assert pod["spec"]["nodeName"] in nodes
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    reached(first, job.id, State.RUNNING)
    assert first.end() == 0
    second = site.started()
    assert second.client("susan").job(job.id).job.state is State.RUNNING
    let_end(access, site, pod)
    reached(second, job.id, State.SUCCEEDED)
    status = until(lambda: written(access, site, job.id)["status"])
    assert status["attempts"][0]["workers"][0]["node"] == pod["spec"]["nodeName"]
    assert second.end() == 0
    third = site.started()
    kept = third.client("susan").job(job.id)
    assert (kept.job.state, kept.job.exit_code, kept.job.attempt) == (State.SUCCEEDED, 0, 1)
    assert len(pods(access, site, job.id)) <= 1


def test_gang_stays_in_one_rack_or_is_rejected(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    replica = site.started()
    client = replica.client("susan")
    with pytest.raises(Exception, match="inside one rack: the largest holds 2"):
        client.submit(command(gpus=4, workers=3, required_level="rack"))
    job = client.submit(command(gpus=4, workers=2, required_level="rack"))
    found = running(access, site, job.id, count=2)
    assert {pod["spec"]["nodeName"] for pod in found} == set(nodes[:2])


def test_job_applied_with_kubectl_is_checked(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    replica = site.started()
    kind = {"apiVersion": "benchpool.io/v1", "kind": "TrainingJob"}
    path = JOBS.format(site.namespace)
    spec = {"user": "susan", "command": ["python3", "train.py"], "gpus": 1}
    access.create(path, {**kind, "metadata": {"name": "mine"}, "spec": spec})
    id_ = until(lambda: written(access, site, "mine").get("status", {}).get("id"))
    (pod,) = running(access, site, id_)
    assert replica.client("susan").job(id_).job.name == "mine"
    wrong = {**spec, "project": "joe"}
    access.create(path, {**kind, "metadata": {"name": "theirs"}, "spec": wrong})
    condition = until(lambda: accepted(written(access, site, "theirs")))
    assert (condition["status"], condition["reason"]) == ("False", "NotAMember")
    assert "not a member of project joe" in condition["message"]
    access.delete(f"{path}/mine")
    until(lambda: not [p for p in pods(access, site, id_) if p["status"]["phase"] == "Running"])
    until(lambda: not replica.client("ada").jobs(all_=True))
    assert pod["metadata"]["name"].startswith("bp-")


def test_workers_and_priority_match_in_object_and_http(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    replica = site.started()
    client = replica.client("susan")
    job = client.submit(command(workers=1, min_workers=1))
    running(access, site, job.id)
    reached(replica, job.id, State.RUNNING)
    changed = client.change(job.id, priority=80, workers=2)
    assert (changed.priority, changed.workers) == (80, 2)
    spec = written(access, site, job.id)["spec"]
    assert (spec["priority"], spec["workers"], spec["minWorkers"]) == (80, 2, 1)
    running(access, site, job.id, count=2)

    gang = client.submit(command(workers=2))
    running(access, site, gang.id, count=2)
    reached(replica, gang.id, State.RUNNING)
    path = f"{JOBS.format(site.namespace)}/{gang.id}"
    access.patch(f"{path}/scale", {"spec": {"replicas": 3}})
    event = until(lambda: of_type(written(access, site, gang.id), "EditRefused"))
    assert "runs with all of its 2 workers or none; pause it first" in event["message"]
    assert written(access, site, gang.id)["spec"]["workers"] == 2

    assert replica.end() == 0
    again = site.started().client("susan")
    assert (again.job(job.id).job.priority, again.job(job.id).job.workers) == (80, 2)
    assert again.job(gang.id).job.workers == 2


def accepted(job: dict[str, Any]) -> dict[str, Any]:
    return of_type(job, "Accepted")


def of_type(job: dict[str, Any], kind: str) -> dict[str, Any]:
    conditions = job.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


def claim(name: str, user: str, mode: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": {"hub.jupyter.org/username": user}},
        "spec": {
            "accessModes": [mode],
            "storageClassName": "nobody-makes-it",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def test_job_with_folder_mounts_shared_home(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    claims = f"/api/v1/namespaces/{site.namespace}/persistentvolumeclaims"
    access.create(claims, claim("home-of-susan", "susan", "ReadWriteMany"))
    access.create(claims, claim("home-of-joe", "joe", "ReadWriteOnce"))
    replica = site.started()
    mounted: dict[str, list[str]] = {}
    for user in ("susan", "joe"):
        job = replica.client(user).submit(command(working_dir="/home/jovyan/lab"))
        (pod,) = running(access, site, job.id, waiting=True)
        mounted[user] = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"]["volumes"]
            if "persistentVolumeClaim" in volume
        ]
    assert mounted == {"susan": ["home-of-susan"], "joe": []}


def test_job_object_shows_waiting_reason(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    replica = site.started()
    client = replica.client("susan")
    first = client.submit(command(gpus=4, workers=3))
    running(access, site, first.id, count=3)
    second = client.submit(command())
    reason = until(
        lambda: written(access, site, second.id).get("status", {}).get("reason"),
        holds=lambda reason: reason and reason["code"] != "next-pass",
    )
    assert reason["code"] == client.why(second.id).reason.code  # type: ignore[union-attr]
    assert "Waits for 1 GPU: 0 of 12 are free" in reason["text"]


def test_settings_objects_apply_completely_or_not(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    replica = site.started()
    path = "/apis/benchpool.io/v1/projects"
    client = replica.client("susan")
    with pytest.raises(Refused):
        client.submit(command(gpus=3, workers=2, preemptible=False))
    access.patch(f"{path}/susan", {"spec": {"quota": 6}})
    until(lambda: quota(replica, "susan") == 6)
    client.submit(command(gpus=3, workers=2, preemptible=False))
    access.patch(f"{path}/susan", {"spec": {"quota": 8, "parent": "nobody"}})
    settings = "/apis/benchpool.io/v1/poolsettings/default"
    access.wait(settings, lambda it: in_force(it) == "False")
    project = access.wait(f"{path}/susan", lambda it: in_force(it) == "False")  # written later
    (condition,) = project["status"]["conditions"]
    assert "has the parent 'nobody', which is not a project" in condition["message"]
    assert quota(replica, "susan") == 6
    assert any("nobody" in text for text in replica.client("ada").status().health.problems)
    access.patch(f"{path}/susan", {"spec": {"parent": None}})
    access.wait(settings, lambda it: in_force(it) == "True")
    until(lambda: quota(replica, "susan") == 8)


def test_configuration_over_http_becomes_objects_with_status(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    replica = site.started()
    text = """\
version: 1
projects:
  - {name: Vision Lab, quota: 2, members: [susan]}
pools:
  - {name: east, nodes: {example.org/rack: east}, purpose: [train]}
"""
    changed = replica.client("ada").apply_config(text)
    assert changed.applied
    projects = access.get("/apis/benchpool.io/v1/projects")["items"]
    (project,) = [one for one in projects if one["spec"].get("name") == "Vision Lab"]
    assert len(projects) == 1
    job = replica.client("susan").submit(command(gpus=3))
    (pod,) = running(access, site, job.id)
    assert pod["spec"]["nodeName"] in nodes[:2]
    path = f"/apis/benchpool.io/v1/projects/{project['metadata']['name']}"
    stands = access.wait(path, lambda it: it.get("status", {}).get("allocated") == 3)["status"]
    assert (stands["fairShare"], stands["waiting"]) == (3, 0)
    pools = "/apis/benchpool.io/v1/nodepools/east"
    east = access.wait(pools, lambda it: it.get("status", {}).get("free") == 5)["status"]
    assert (east["nodes"], east["gpus"]) == (2, 8)
    again = site.start("again")
    assert replica.end() == 0
    until(again.leads)
    assert again.client("susan").job(job.id).job.project == "Vision Lab"


def test_project_and_pool_status_is_written_on_change_only(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    path = "/apis/benchpool.io/v1/projects"
    site.configuration += """\
pools:
  - {name: west, nodes: {example.org/rack: west}}
  - {name: east, nodes: {example.org/rack: east}, purpose: [train]}
"""
    first = site.started()
    job = first.client("susan").submit(command(gpus=4))
    access.wait(f"{path}/susan", stands(allocated=4, waiting=0))
    before = access.wait(f"{path}/joe", stands(allocated=0))
    assert columns(access, path, "Name", "Quota", "Share", "Holds", "Waiting") == [
        ["joe", "4", before["status"]["fairShare"], 0, 0],
        ["susan", "4", 4, 4, 0],
    ]
    (pod,) = running(access, site, job.id)
    pools = "/apis/benchpool.io/v1/nodepools"
    free = {"east": 8, "west": 4}
    free["west" if pod["spec"]["nodeName"] == nodes[2] else "east"] -= 4
    for pool, count in free.items():
        access.wait(f"{pools}/{pool}", stands(free=count))
    assert columns(access, pools, "Name", "Nodes", "GPUs", "Free") == [
        ["east", 2, 8, free["east"]],
        ["west", 1, 4, free["west"]],
    ]
    assert first.end() == 0

    site.started().client("susan").submit(command(gpus=1))
    access.wait(f"{path}/susan", stands(allocated=5))
    now = access.get(f"{path}/joe")
    assert now["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]
    access.delete(f"{path}/joe")
    made = {key: now[key] for key in ("apiVersion", "kind", "spec")}
    access.create(path, {**made, "metadata": {"name": "joe"}})
    access.wait(f"{path}/joe", stands(allocated=0))


def stands(**numbers: int) -> Callable[[dict[str, Any]], bool]:
    return lambda it: numbers.items() <= it.get("status", {}).items()


def columns(access: Access, path: str, *names: str) -> list[list[Any]]:
    """Return columns as `kubectl get` shows them."""
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    with access.client() as client:
        table = client.get(path, headers=accept).json()
    at = {column["name"]: index for index, column in enumerate(table["columnDefinitions"])}
    return sorted([row["cells"][at[name]] for name in names] for row in table["rows"])


def quota(replica: Replica, user: str) -> int | None:
    (project,) = replica.client(user).quota().projects
    return project.quota


def in_force(settings: dict[str, Any]) -> str:
    conditions = settings.get("status", {}).get("conditions", [])
    return next((str(one["status"]) for one in conditions if one["type"] == "InForce"), "")


def test_jobs_wait_for_cordoned_node(access: Access, site: Site, nodes: tuple[str, ...]) -> None:
    for name in nodes:
        access.patch(f"/api/v1/nodes/{name}", {"spec": {"unschedulable": True}})
    replica = site.started()
    client = replica.client("susan")
    job = client.submit(command())
    until(lambda: (why := client.why(job.id).reason) and why.code == "no-node-ready")
    access.patch(f"/api/v1/nodes/{nodes[1]}", {"spec": {"unschedulable": None}})
    (pod,) = running(access, site, job.id)
    assert pod["spec"]["nodeName"] == nodes[1]


def test_deleted_lease_is_restored_for_running_server_only(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    people = (Person("susan", servers=("",)), Person("joe"), Person("ada", admin=True))
    site.configuration += "build: {default: 1}\n"
    with small_hub(people) as site.hub:
        replica = site.started()
        client = replica.client("ada")
        leases = {user: client.reserve(LeaseRequest(user, "", "1", 1)) for user in ("susan", "joe")}
        path = f"/apis/benchpool.io/v1/namespaces/{site.namespace}/buildleases"
        first = access.get(f"{path}/{leases['susan'].id}")
        for lease in leases.values():
            access.delete(f"{path}/{lease.id}")
        (left,) = until(lambda: found if len(found := access.get(path)["items"]) == 1 else [])
        until(lambda: [it.user for it in client.leases()] == ["susan"])
        assert left["metadata"]["uid"] != first["metadata"]["uid"]
        assert left["spec"] == first["spec"]
        replica.kill()


def test_job_avoids_node_after_failed_admission(
    access: Access, site: Site, nodes: tuple[str, ...]
) -> None:
    let_pods_in(access, nodes, 0)  # unknown to the scheduler
    replica = site.started()
    client = replica.client("susan")
    job = client.submit(command(gpus=4))

    def ended() -> dict[str, Any]:
        attempts = written(access, site, job.id).get("status", {}).get("attempts", [{}])
        return attempts[0] if "ended" in attempts[0] else {}

    attempt = until(ended)
    refused = attempt["workers"][0]
    assert (attempt["endedBy"], refused["endedBy"]) == ("not-taken", "not-taken")
    assert refused["text"].startswith(f"{refused['node']} cannot run it: ")
    let_pods_in(access, nodes, 110)
    (pod,) = running(access, site, job.id)
    assert pod["spec"]["nodeName"] != refused["node"]
    others = [client.submit(command(gpus=4)) for _ in range(2)]
    held = {running(access, site, other.id)[0]["spec"]["nodeName"] for other in others}
    assert refused["node"] in held


def let_pods_in(access: Access, nodes: tuple[str, ...], count: int) -> None:
    for node in nodes:
        status = {"status": {"allocatable": {"pods": str(count)}}}
        access.patch(f"/api/v1/nodes/{node}/status", status)
