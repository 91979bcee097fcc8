"""`benchpool config set`, `log` and `revert` where cluster objects are the configuration."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler import cli
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_support.replicas import Replica, Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

PROJECT = "/apis/benchpool.io/v1/projects/susan"
QUICK = 25
"""Number of consecutive changes; the watch falls behind the writes."""

Verb = Callable[..., tuple[int, str]]


@pytest.fixture
def site(site: Site) -> Site:
    """Return an installation whose leader keeps its lease on a busy machine."""
    return dataclasses.replace(site, more={"BENCHPOOL_LEADER_LEASE_S": "60"})


@pytest.fixture
def terminal(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Verb:
    """Return the administrator's terminal, which returns exit status and output of a command."""

    def run(replica: Replica, *words: str) -> tuple[int, str]:
        environ: Mapping[str, str] = {
            "BENCHPOOL_URL": replica.url,
            "BENCHPOOL_TOKEN": "ada",
            "BENCHPOOL_STATE": str(tmp_path / "none"),
            "PATH": os.environ["PATH"],
        }
        capfdbinary.readouterr()
        status = cli.run(words, environ, tmp_path)
        out, err = capfdbinary.readouterr()
        return status, (out + err).decode()

    return run


def quota(access: Access) -> int:
    return int(access.get(PROJECT)["spec"]["quota"])


def versions(terminal: Verb, replica: Replica) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(
        terminal(replica, "config", "log", "--json")[1]
    )
    return found


def test_values_are_set_logged_and_reverted(
    access: Access, site: Site, nodes: tuple[str, ...], terminal: Verb
) -> None:
    first = site.started()
    words = ("config", "set", "projects.susan.quota=6", "--reason", "a paper is due")
    status, text = terminal(first, *words)
    assert (status, quota(access)) == (0, 6), text
    assert "guaranteed quota 4 → 6" in text
    newest = versions(terminal, first)[0]
    assert (newest["author"], newest["way"], newest["reason"]) == ("ada", "set", "a paper is due")
    assert "a paper is due" in terminal(first, "config", "log")[1]

    # A change with kubectl is a version too; only the API server knows its author.
    access.patch(PROJECT, {"spec": {"quota": 8}})
    until(lambda: versions(terminal, first)[0]["way"] == "objects")
    newest = versions(terminal, first)[0]
    assert (newest["author"], newest["changes"]) == (
        "",
        ["Project susan (susan): guaranteed quota 6 → 8."],
    )

    # The next leader knows the versions, and the objects have the set values.
    assert first.end() == 0
    second = site.started()
    assert [it["way"] for it in versions(terminal, second)] == ["objects", "set", "start"]
    number = versions(terminal, second)[1]["number"]
    status, text = terminal(second, "config", "revert", str(number), "--reason", "they have enough")
    assert (status, quota(access)) == (0, 6), text
    assert "guaranteed quota 8 → 6" in text
    newest = versions(terminal, second)[0]
    assert (newest["author"], newest["reverts"], newest["reason"]) == (
        "ada",
        number,
        "they have enough",
    )
    status, text = terminal(second, "config", "set", "projects.susna.quota=1")
    assert (status, quota(access)) == (2, 6)
    assert "did you mean `susan`" in text


def test_stale_objects_do_not_revert_quick_changes(
    access: Access, site: Site, nodes: tuple[str, ...], terminal: Verb
) -> None:
    replica = site.started()
    client = replica.client("ada")
    for number in range(QUICK):
        wanted = 2 + number % 3
        changed = client.set_config(
            ConfigurationEdit([Setting("projects.susan.quota", wanted)], f"change {number}")
        )
        assert changed.applied
        (project,) = replica.client("susan").quota().projects
        assert (project.quota, quota(access)) == (wanted, wanted)
    # A foreign change follows all of them: by then the watch has read everything.
    access.patch(PROJECT, {"spec": {"quota": 5}})
    until(lambda: versions(terminal, replica)[0]["changes"][0].endswith("→ 5."))
    ways = [it["way"] for it in versions(terminal, replica)]
    assert ways == ["objects", *["set"] * QUICK, "start"]
