"""Calls to a real API server: typed answers, typed refusals, retries."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from benchpool_cluster.access import Access
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.kube import (
    ONCE,
    Connection,
    KubeAlreadyExists,
    KubeConflict,
    KubeForbidden,
    KubeInvalid,
    KubeNotFound,
    KubeUnavailable,
    Precondition,
    RetryPolicy,
    connect,
)
from benchpool_scheduler.kube.kinds import CONFIG_MAPS, NAMESPACES, SECRETS
from benchpool_scheduler.kube.reflector import Metadata
from benchpool_scheduler.kube.retry import wait_s

pytestmark = pytest.mark.kubernetes


class Map(Struct):
    metadata: Metadata
    data: dict[str, str] = {}


def a_map(name: str, **data: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": data}


async def test_objects_are_created_read_changed_and_deleted(
    connection: Connection, namespace: str
) -> None:
    made = await connection.create(CONFIG_MAPS, a_map("one", a="1"), namespace=namespace, as_=Map)
    assert (made.metadata.name, made.data) == ("one", {"a": "1"})
    merged = await connection.patch(
        CONFIG_MAPS, "one", {"data": {"b": "2"}}, namespace=namespace, as_=Map
    )
    assert merged.data == {"a": "1", "b": "2"}
    steps = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "remove", "path": "/data/a"},
    ]
    left = await connection.patch(CONFIG_MAPS, "one", steps, namespace=namespace, as_=Map)
    assert left.data == {"b": "2"}
    with pytest.raises(KubeInvalid):
        await connection.patch(CONFIG_MAPS, "one", steps, namespace=namespace)
    body = a_map("one", c="3")
    placed = await connection.replace(CONFIG_MAPS, "one", body, namespace=namespace, as_=Map)
    assert placed.data == {"c": "3"}
    two = {"apiVersion": "v1", "kind": "ConfigMap"} | a_map("two", x="y")
    await connection.apply(CONFIG_MAPS, "two", two, manager="tests", namespace=namespace)
    await connection.delete(CONFIG_MAPS, "one", namespace=namespace)
    with pytest.raises(KubeNotFound):
        await connection.get(CONFIG_MAPS, "one", namespace=namespace)
    listed = await connection.list(CONFIG_MAPS, namespace=namespace, fields="metadata.name=two")
    assert [it["data"] for it in listed.items] == [{"x": "y"}]


async def test_refusals_are_distinguished(connection: Connection, namespace: str) -> None:
    made = await connection.create(CONFIG_MAPS, a_map("one"), namespace=namespace, as_=Map)
    with pytest.raises(KubeAlreadyExists):
        await connection.create(CONFIG_MAPS, a_map("one"), namespace=namespace)
    await connection.patch(CONFIG_MAPS, "one", {"data": {"a": "1"}}, namespace=namespace)
    old = a_map("one") | {
        "metadata": {"name": "one", "resourceVersion": made.metadata.resource_version}
    }
    with pytest.raises(KubeConflict):
        await connection.replace(CONFIG_MAPS, "one", old, namespace=namespace)
    with pytest.raises(KubeConflict):
        await connection.delete(
            CONFIG_MAPS,
            "one",
            namespace=namespace,
            precondition=Precondition(uid="00000000-0000-0000-0000-000000000000"),
        )
    with pytest.raises(KubeInvalid, match="lower case"):
        await connection.create(CONFIG_MAPS, a_map("No Name"), namespace=namespace)
    await connection.delete_all(CONFIG_MAPS, namespace=namespace, labels="!none")


async def test_insufficient_rights_are_forbidden(access: Access) -> None:
    someone = access.service_account("default", "nobody")
    async with connect(someone.kubeconfig) as weak:
        with pytest.raises(KubeForbidden, match="cannot list resource"):
            await weak.list(SECRETS, namespace="default")


async def test_long_list_is_complete(
    connection: Connection, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchpool_scheduler.kube.connection.PAGE", 7)
    names = [f"m-{number:02}" for number in range(30)]
    await asyncio.gather(
        *(connection.create(CONFIG_MAPS, a_map(name), namespace=namespace) for name in names)
    )
    listed = await connection.list(CONFIG_MAPS, namespace=namespace, labels="!x", as_=Map)
    found = [it.metadata.name for it in listed.items]
    assert [name for name in found if name.startswith("m-")] == names


async def test_unreachable_api_server_is_reported(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " clusters: [{name: k, cluster: {server: 'http://127.0.0.1:9'}}],"
        " users: [{name: u, user: {token: t}}],"
        " contexts: [{name: c, context: {cluster: k, user: u, namespace: here}}]}"
    )
    async with connect(config, patience=RetryPolicy(total_s=0.3, first_s=0.05)) as away:
        assert away.namespace == "here"
        with pytest.raises(KubeUnavailable, match=r"127\.0\.0\.1:9 did not complete GET") as caught:
            await away.get(NAMESPACES, "default")
        numbers = caught.value.numbers
        assert isinstance(numbers["tries"], int)
        assert numbers["tries"] > 1


async def test_missing_kubeconfig_is_reported(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="Name a kubeconfig file"):
        async with connect(tmp_path / "none"):
            pass


@given(
    tries=st.integers(1, 60),
    spent=st.floats(0, 1e4),
    luck=st.floats(0, 1, exclude_max=True),
    asked=st.none() | st.floats(0, 1e4),
    total=st.floats(0, 1e3),
)
def test_call_timeout_stays_within_patience(
    tries: int, spent: float, luck: float, asked: float | None, total: float
) -> None:
    patience = RetryPolicy(total_s=total)
    wait = wait_s(patience, tries, spent, luck, asked)
    if wait is None:
        least = asked or 0.0
        assert spent + least + patience.longest_s >= total
    else:
        assert spent + wait < total
        assert wait >= (asked or 0.0)
    assert wait_s(ONCE, tries, spent, luck, asked) is None
