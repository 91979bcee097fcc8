"""Requests against benchpool's objects by a user with rights in the work namespace.

A table of requests is a dictionary whose keys describe the attempt. Paths are relative to the work
namespace; ``{worker}``, ``{notebook}``, ``{attempt}`` stand for existing objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchpool_cluster.chart import Manifest
from benchpool_cluster.doors import pod


@dataclass(frozen=True, slots=True)
class Request:
    """One request and the rule that rejects it.

    Attributes:
        rule: Several possible rules are separated by ``|``: the API server names one of them.
        patch: The kind of patch: merge, json.
    """

    method: str
    path: str
    rule: str
    body: Any = None
    patch: str = ""

    @property
    def rules(self) -> list[str]:
        """Return the rules, one of which rejects the request."""
        return self.rule.split("|")


def at(resource: str, name: str = "", sub: str = "", group: str = "v1") -> str:
    """Return the path of a resource in the work namespace; ``group`` includes its version.

    >>> at("jobs", "{attempt}", "status", "batch/v1")
    '/apis/batch/v1/namespaces/{space}/jobs/{attempt}/status'
    """
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    parts = [root, "namespaces/{space}", resource, name, sub]
    return "/".join(part for part in parts if part)


def delete(path: str, rule: str = "end") -> Request:
    """Return a request that deletes an object."""
    return Request("DELETE", path, rule)


def merge(path: str, body: Any, rule: str = "change") -> Request:
    """Return a request that changes an object."""
    return Request("PATCH", path, rule, body, "merge")


def make(resource: str, body: Manifest, rule: str, group: str = "v1") -> Request:
    """Return a request that creates an object."""
    return Request("POST", at(resource, group=group), rule, body)


def made(
    kind: str, spec: Mapping[str, Any] | None = None, group: str = "v1", **about: Any
) -> Manifest:
    """Return an object of a kind, named ``mine`` unless ``about`` has another name."""
    thing: Manifest = {"apiVersion": group, "kind": kind, "metadata": {"name": "mine"} | about}
    return thing if spec is None else thing | {"spec": dict(spec)}


def a_pod(rule: str, spec: Mapping[str, Any] | None = None, **more: Any) -> Request:
    """Return a request that creates a pod; ``more`` as in ``doors.pod``, or ``name``."""
    name = more.pop("name", None)
    manifest = pod(spec, **more)
    if name:
        manifest["metadata"]["name"] = name
    return make("pods", manifest, rule)


def filled(value: Any, standing: Mapping[str, str]) -> Any:
    """Return the value with the names of existing objects in all its texts.

    >>> filled({"a": ["{worker}"]}, {"worker": "w"})
    {'a': ['w']}
    """
    if isinstance(value, str):
        for name, there in standing.items():
            value = value.replace("{" + name + "}", there)
        return value
    if isinstance(value, Mapping):
        return {key: filled(one, standing) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [filled(one, standing) for one in value]
    return value
