"""The story on a cluster: a gang over both nodes borrows GPUs, is reclaimed and completes.

The course is read from the API server and from the screens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from benchpool_cluster.sites import Site, gpus_of, lives, state_of
from benchpool_cluster.witness import Object, Witness, witness
from benchpool_scheduler.contract import kubernetes as names
from benchpool_support import small_network
from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person

pytestmark = [pytest.mark.kubernetes, pytest.mark.e2e, pytest.mark.timeout(2400)]

TRY, SENT = 6, 7
"""Cells of the notebook: the cell that tries a step, and the cell that is sent."""

UNINTERRUPTED = 'cd "$(mktemp -d)" && exec python3 -c "$0"'
GPUS_OF_A_NODE = 4
ONCE = ["queued", "starting", "running"]
COURSE = [*ONCE, "pausing", *ONCE, "succeeded"]


@pytest.fixture
def jobs(site: Site) -> Iterator[Witness]:
    """Yield the API server's history of jobs."""
    with witness(site.access, site.jobs_path) as one:
        yield one


@pytest.fixture
def seen_pods(site: Site) -> Iterator[Witness]:
    """Yield the API server's history of pods of notebooks and jobs."""
    with witness(site.access, site.space.path("pods")) as one:
        yield one


def node_of(pod: Object) -> str:
    """Return the node of a pod."""
    return str(pod["spec"].get("nodeName", ""))


def image_of(pod: Object) -> str:
    """Return the digest of the image that runs in a pod's own container."""
    return str(pod["status"]["containerStatuses"][0]["imageID"])


def holds_gpus(pod: Object) -> bool:
    """Return whether a pod holds its GPUs."""
    return pod["status"]["phase"] in ("Pending", "Running") and "gone" not in pod


def most_gpus(pods: Witness) -> dict[str, int]:
    """Return the highest number of GPUs that living pods ever held on each node."""
    living: dict[str, Object] = {}
    most: dict[str, int] = {}
    for pod in pods.seen:
        living[pod["metadata"]["uid"]] = pod
        holding = [one for one in living.values() if holds_gpus(one)]
        for node in filter(None, map(node_of, holding)):
            held = sum(gpus_of(one) for one in holding if node_of(one) == node)
            most[node] = max(most.get(node, 0), held)
    return most


def workers_of(pods: Witness, id_: str, attempt: int) -> dict[str, Object]:
    """Return all pods of a job's attempt by name, each in its last version."""
    wanted = {names.JOB: id_, names.ATTEMPT: str(attempt)}
    return {
        pod["metadata"]["name"]: pod
        for pod in pods.seen
        if wanted.items() <= pod["metadata"].get("labels", {}).items()
    }


def test_reclaimed_gang_ends_with_uninterrupted_result(
    site: Site, person: Callable[[str], Person], jobs: Witness, seen_pods: Witness
) -> None:
    susan, joe, jemma = person("susan"), person("joe"), person("jemma")

    # Jemma works already: her notebook holds a GPU on the node of her home.
    jemma.log_in()
    jemma.start_server(1)
    assert node_of(site.notebook("jemma")) == "node-2"

    # Susan's click creates a pod with a GPU through the spawner.
    susan.log_in()
    susan.open_start_form()
    expect(susan.page.get_by_text("build quota").first).to_be_visible()
    susan.look("cluster-start-form")
    susan.start_server(1)
    notebook = site.notebook("susan")
    assert (node_of(notebook), gpus_of(notebook)) == ("node-1", 1)
    assert notebook["metadata"]["labels"][names.ROLE] == names.ROLE_NOTEBOOK
    bench = lives(notebook)

    site.write_file("susan", "train.ipynb", small_network.notebook(small_network.TOGETHER))
    susan.open_file("train.ipynb")
    susan.wait_for_kernel()
    for number in range(1, TRY + 1):
        susan.run_cell(number)
    program = small_network.program(small_network.TOGETHER)
    alone = site.space.exec("jupyter-susan", "sh", "-c", UNINTERRUPTED, program, seconds=120)
    expected = small_network.result(alone)

    # She sends the training cell to two workers with two GPUs each: two of the four over quota.
    susan.select_cell(SENT)
    susan.press_send_button()
    susan.choose_workers(2)
    susan.choose_gpus(2)
    expect(susan.dialog).to_contain_text("on each of 2 workers")
    expect(susan.dialog).to_contain_text("2 over")
    expect(susan.dialog).to_contain_text("it works on a copy of the files that were sent with it")
    susan.look("cluster-send-dialog")
    susan.send()
    expect(susan.badge(SENT)).to_have_attribute("data-state", "running", timeout=2 * PATIENCE_MS)
    susan.open_panel()
    susan.expect_state("train", "running")
    expect(susan.page.get_by_text("notified about official Jupyter news")).to_have_count(0)

    # Neither node can hold both workers: three GPUs are left on each.
    train = site.job_named("train")["metadata"]["name"]
    workers = site.workers(train)
    assert [node_of(one) for one in workers] in (["node-1", "node-2"], ["node-2", "node-1"])
    assert [gpus_of(one) for one in workers] == [2, 2]
    assert {image_of(one) for one in workers} == {image_of(notebook)}

    # Both growing logs are in the panel; each worker has different GPUs.
    details = susan.open_row("train")
    expect_text(details, re.compile(r"worker 0 of 2 on GPU-[^,]+,GPU-"))
    details.get_by_label("Worker").select_option("1")
    expect_text(details, re.compile(r"worker 1 of 2 on GPU-[^,]+,GPU-"))
    susan.look("cluster-gang-over-both-nodes")
    details.get_by_label("Worker").select_option("0")

    # Joe has no GPU on the bench and two in the pool. They are free, one on each node.
    joe.log_in()
    joe.start_server(0)
    assert gpus_of(site.notebook("joe")) == 0
    site.write_file("joe", "use_two.py", small_network.SCRIPT)
    joe.open_panel()
    send_script(joe, "use_two.py", workers=2, gpus=1)
    joe.expect_state("use_two", "running")
    assert state_of(site.job(train)) == "running"

    # Jemma claims her guaranteed quota: Susan's whole gang is preempted.
    site.write_file("jemma", "use_two.py", small_network.SCRIPT)
    jemma.open_panel()
    send_script(jemma, "use_two.py", workers=1, gpus=2)
    jemma.expect_state("use_two", "running")
    susan.expect_state("train", "queued")
    details = susan.open_row("train")
    expect(details.get_by_test_id("benchpool-reason")).to_contain_text(re.compile(r"\d"))
    expect_text(details.get_by_test_id("benchpool-preemptions"), "jemma")
    expect_text(details, "saved at step 200")
    susan.look("cluster-paused-for-jemma")

    # Her notebook was never touched: the same kernel still has her names.
    susan.run_cell(TRY)
    expect(susan.cell(TRY).locator(".jp-InputPrompt")).to_have_text(f"[{TRY + 1}]:")

    # GPUs become free; the gang resumes from its checkpoint automatically and completes.
    jemma.cancel("use_two")
    susan.expect_state("train", "succeeded")
    details = susan.open_row("train")
    attempts = details.get_by_test_id("benchpool-attempts").locator("li")
    expect(attempts).to_have_count(2, timeout=PATIENCE_MS)
    expect_text(details, "resumed at step 200")
    expect_text(details, expected)
    susan.look("cluster-finished")
    joe.expect_state("use_two", "running")

    # Its files are back in the notebook's folder, and the executed copy opens from there.
    susan.open_executed_copy(details)
    susan.scroll_to(susan.notebook.locator(".jp-OutputArea-output", has_text=expected))
    susan.look("cluster-executed-copy")
    (results,) = site.read_file("susan", "benchpool-results")["content"]
    left = {one["name"] for one in site.read_file("susan", results["path"])["content"]}
    assert {f"{results['name']}.ipynb", "weights.json"} <= left

    # The same facts from the API server.
    done = site.wait_job(train, "succeeded")["status"]
    assert [one for one in jobs.course(train, state_of) if one] == COURSE
    job = jobs.wait(lambda one: bool(stop_request(one)), "the notice")
    assert (stop_request(job)["kind"], stop_request(job)["graceSeconds"]) == ("preempt", 20)
    (preemption,) = done["preemptions"]
    assert "jemma" in preemption["for"]
    assert preemption["gpus"] == 4
    for attempt in (1, 2):
        had = workers_of(seen_pods, train, attempt)
        assert sorted(map(node_of, had.values())) == ["node-1", "node-2"], attempt
    assert most_gpus(seen_pods) == {"node-1": GPUS_OF_A_NODE, "node-2": GPUS_OF_A_NODE}
    assert lives(site.notebook("susan")) == bench


def expect_text(place: Locator, words: str | re.Pattern[str]) -> None:
    """Wait until an element shows some words; logs come from another machine."""
    expect(place).to_contain_text(words, timeout=PATIENCE_MS)


def stop_request(job: Object) -> dict[str, Any]:
    """Return the stop request of a job's workers, or an empty dictionary."""
    return dict(job.get("status", {}).get("wish") or {})


def send_script(who: Person, name: str, *, workers: int, gpus: int) -> None:
    """Send a script with several workers from the file browser's menu."""
    who.open_file_dialog(name)
    who.choose_workers(workers)
    who.choose_gpus(gpus)
    who.send()
