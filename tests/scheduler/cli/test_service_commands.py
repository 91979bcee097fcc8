"""``benchpool serve``, ``services``, ``service`` and the commands to sleep, stop and remove."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from benchpool_scheduler import cli
from benchpool_scheduler.client import service_documents
from benchpool_scheduler.client.service_templates import TEMPLATES, filled
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.serving import ServiceAccess
from benchpool_scheduler.service.jobs.serving.replica_submissions import of_replica
from benchpool_scheduler.store.service_files import ServiceRecord
from benchpool_support.waiting import until

Benchpool = Callable[..., Any]

SERVER = """
import http.server, os, sys
address = ("127.0.0.1", int(sys.argv[1]))
assert os.environ["PORT"] == sys.argv[1]
http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def until_service(benchpool: Benchpool, name: str, state: str) -> Any:
    return until(
        lambda: benchpool("service", name, "--json").json,
        f"service {name} is {state}",
        holds=lambda one: one["state"] == state,
    )


@pytest.mark.slow
def test_service_is_started_changed_slept_and_removed(benchpool: Benchpool, folder: Path) -> None:
    (folder / "answer.py").write_text(SERVER)
    result = benchpool("serve", "files", "--min", "0", "--idle", "10m", "answer.py", "{port}")
    assert result.status == 0, result.err
    assert result.out.splitlines()[0].startswith("files version 1, project ")
    assert "Address: http://127.0.0.1:" in result.out
    assert "/s/files/" in result.out
    assert "0 to 1 replica, 1 GPU each; asleep after 10 min without requests" in result.out
    ready = until_service(benchpool, "files", "ready")
    (replica,) = ready["replicas"]
    assert replica["phase"] == "ready"
    again = benchpool("serve", "files", "answer.py", "{port}")
    assert (again.status, "Use --update" in again.err) == (3, True)
    more = benchpool("serve", "files", "--access", "everyone", "--update", "answer.py", "{port}")
    assert "Open to: all logged-in users" in more.out
    assert "files" in benchpool("services").out
    shown = benchpool("service", "files").out
    assert f"log: benchpool logs -f {replica['job'][:8]}" in shown
    assert re.search(r"\d\d:\d\d:\d\d  \S+ started it\.", shown), shown
    assert "Stopped: " in benchpool("stop-service", "files").out
    assert benchpool("wake-service", "files").status == 0
    assert "Asleep: " in benchpool("sleep-service", "files").out
    assert benchpool("restart-service", "files", "--json").json["version"] >= 2
    assert benchpool("remove-service", "files").status == 0
    assert "No services." in benchpool("services").out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (("Big", "--", "true"), "'Big' cannot be part of an address"),
        (("a", "--access", "friends", "--", "true"), "access friends is not known"),
        (("a", "--idle", "soon", "--", "true"), "idle"),
        (("a", "--readiness", "health", "--", "true"), "readiness"),
        (("a", "--update", "--", "true"), "Leave out --update to start it"),
        (("a",), "There is nothing to run"),
        ((), "benchpool serve NAME"),
    ],
)
def test_invalid_service_is_rejected(
    benchpool: Benchpool, folder: Path, words: tuple[str, ...], refusal: str
) -> None:
    result = benchpool("serve", *words)
    assert (result.status, refusal in result.err) == (2, True), result.err
    assert benchpool("services", "--json").json == []


FILE = """
name: files
script: answer.py
args: ["{port}"]
min: 0
idle: 10m
access: everyone
env: {GREETING: "1"}
"""


@pytest.mark.slow
def test_service_file_equals_options(benchpool: Benchpool, folder: Path) -> None:
    (folder / "answer.py").write_text(SERVER)
    (folder / "service.yaml").write_text(FILE)
    result = benchpool("serve", "-f", str(folder / "service.yaml"))
    assert result.status == 0, result.err
    assert "0 to 1 replica, 1 GPU each; asleep after 10 min without requests" in result.out
    again = benchpool("serve", "-f", str(folder / "service.yaml"), "--json")
    assert (again.status, again.json["version"], again.json["access"]) == (0, 1, "everyone")
    words = ("--min", "0", "--idle", "10m", "--access", "everyone", "--env", "GREETING=1")
    alike = benchpool("serve", "files", "--json", *words, "answer.py", "{port}")
    assert alike.status == 0, alike.json
    assert alike.json["version"] == 1
    assert benchpool("remove-service", "files").status == 0


@pytest.mark.parametrize(
    ("text", "words", "refusal"),
    [
        ("name: a\ngpu: 1", (), "line 2: gpu is not a known key; did you mean `gpus`?"),
        ("name: a\ncommand: [x]\ngpus: many", (), "line 3: gpus is"),
        ("command: [x]", (), "name is missing"),
        ("name: a\nscript: a.py\nmodule: b", (), "exactly one of script, module, command"),
        ("name: a\ncommand: [x]\nargs: [y]", (), "args is for script and module"),
        ("name: a\ncommand: [x]\nenv: {A: 1}", (), "line 3: env.A must be text"),
        ("name: Big\ncommand: [x]", (), "'Big' cannot be part of an address"),
        ("name: a\ncommand: [x]\naccess: friends", (), "access friends is not known"),
        ("name: a\ncommand: [x]", ("--min", "0"), "Leave out --min"),
        ("name: a\ncommand: [x]", ("b", "--", "true"), "Leave out NAME and what runs"),
        ("", (), "is empty"),
    ],
)
def test_error_in_service_file_has_position(
    folder: Path, capfd: pytest.CaptureFixture[str], text: str, words: tuple[str, ...], refusal: str
) -> None:
    (folder / "service.yaml").write_text(text)
    status = cli.run(("serve", "-f", str(folder / "service.yaml"), *words), {}, folder)
    errors = capfd.readouterr().err
    assert (status, refusal in errors) == (2, True), errors


def test_service_file_schema_accepts_valid_files(folder: Path) -> None:
    schema = service_documents.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    assert check.is_valid(yaml.safe_load(FILE))
    for wrong in ({"gpu": 1}, {"module": "b"}, {"gpus": "many"}, {"access": "friends"}):
        assert not check.is_valid(yaml.safe_load(FILE) | wrong), wrong


AS_GRADIO_DOES = """
import http.server, os
address = (os.environ["GRADIO_SERVER_NAME"], int(os.environ["GRADIO_SERVER_PORT"]))
assert os.environ["GRADIO_ROOT_PATH"].endswith("/s/demo/")
http.server.HTTPServer(address, http.server.SimpleHTTPRequestHandler).serve_forever()
"""


@pytest.mark.slow
def test_template_runs_script_with_library_settings(benchpool: Benchpool, folder: Path) -> None:
    (folder / "demo.py").write_text(AS_GRADIO_DOES)
    result = benchpool("serve", "demo", "--template", "gradio", "demo.py")
    assert result.status == 0, result.err
    ready = until_service(benchpool, "demo", "ready")
    assert (ready["min_replicas"], ready["readiness"]) == (0, "/")
    for words, refusal in (
        (("gradio", "other.py"), "There is no file other.py"),
        (("gradio",), "Name the input of gradio after the options: a SCRIPT of this folder"),
        (("mlflow", "none.db"), "There is no file none.db here"),
        (("tensorboard", "nothing-of-this-name"), "nothing-of-this-name"),
    ):
        result = benchpool("serve", "other", "--template", *words)
        assert (result.status, refusal in result.err) == (2, True), result.err
    assert benchpool("remove-service", "demo").status == 0
    assert benchpool("services", "--json").json == []


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_template_listens_on_address_and_port_of_replica(name: str, host: str) -> None:
    template = TEMPLATES[name]
    entry = CommandEntry(["python3", *filled(template, "shown", ["--more"])])
    replica = of_replica(
        ServiceRecord(
            id="k" * 26,
            name="board",
            user="susan",
            project="vision",
            created=0.0,
            submission=JobSubmission(entry, env=dict(template.env)),
            min_replicas=0,
            max_replicas=1,
            idle_s=900,
            in_flight=8,
            access=ServiceAccess.OWNER,
            readiness=template.readiness,
            mode="awake",
            mode_since=0.0,
        ),
        host,
        port=40123,
        prefix="/s/board/",
    )
    assert isinstance(replica.entry, CommandEntry)
    words = [*replica.entry.argv, *(replica.env[each] for each in template.env)]
    assert {host, "40123", "shown", "--more"} <= set(words)
    assert not any("{" in word for word in words)
    assert template.readiness.startswith("/")
