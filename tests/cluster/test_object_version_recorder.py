"""A witness records every version, also across an outage of the API server."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.witness import Object, witness

pytestmark = pytest.mark.kubernetes

MAPS = "/api/v1/namespaces/default/configmaps"


def note(text: str) -> dict[str, Any]:
    about = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "note"}}
    return about | {"data": {"text": text}}


def text_of(one: Object) -> str:
    """Return the text of a version, or a mark for a deleted object."""
    return "gone" if "gone" in one else str(one["data"]["text"])


def test_witness_sees_each_version_once_and_deletion(control_plane: ControlPlane) -> None:
    access = control_plane.access
    access.create(MAPS, note("one"))
    with witness(access, MAPS) as seen:
        seen.wait(lambda one: one["metadata"]["name"] == "note", "what was there before")
        for text in ("two", "three"):
            access.patch(f"{MAPS}/note", {"data": {"text": text}})
        access.delete(f"{MAPS}/note")
        access.create(MAPS, note("four"))
        control_plane.processes.kill("kube-apiserver")
        control_plane.restart("kube-apiserver")
        access.patch(f"{MAPS}/note", {"data": {"text": "five"}})
        seen.wait(lambda one: one.get("data", {}).get("text") == "five", "what came after")
        access.delete(f"{MAPS}/note")
        seen.wait(lambda one: "gone" in one and one["data"].get("text") == "five", "the end")
    assert seen.course("note", text_of) == ["one", "two", "three", "gone", "four", "five", "gone"]
