"""Drains, notes and maintenance windows of nodes are stored in the status of the pool settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from benchpool_scheduler.kube import Connection
from benchpool_scheduler.resources.pools import POOL_SETTINGS
from benchpool_scheduler.store.kubernetes import KubernetesStore
from benchpool_scheduler.store.records import NodeRecord, NodeWindowRecord, SaveNodes

pytestmark = pytest.mark.kubernetes


async def test_drain_note_and_maintenance_window_survive_restart(
    make_store: Callable[..., KubernetesStore], connection: Connection
) -> None:
    settings = {
        "apiVersion": POOL_SETTINGS.kind.api_version,
        "kind": "PoolSettings",
        "metadata": {"name": "default"},
        "spec": {},
    }
    await connection.apply(POOL_SETTINGS.kind, "default", settings, manager="tests")
    window = NodeWindowRecord(1_800_000_000.0, 1_800_003_600.0, "new power supply", "ada")
    drained = NodeRecord("n1", "fan is loud", 1_799_999_000.5, "new disk", "ada", window)
    noted = NodeRecord("n2", "spare cables inside")
    store = make_store()
    await store.open()
    await store.commit(SaveNodes((drained, noted)))
    await store.close()
    again = make_store()
    assert (await again.open()).nodes == (drained, noted)
    # In the status of pools ``nodes`` is a number, so the settings store records under another
    # name.
    raw = await connection.get(POOL_SETTINGS.kind, "default", as_=dict[str, object])
    assert "nodes" not in cast(dict[str, object], raw["status"])
    await again.commit(SaveNodes(()))
    await again.close()
    assert (await make_store().open()).nodes == ()
