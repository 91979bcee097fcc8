"""The clusters of these tests."""

from __future__ import annotations

from benchpool_cluster.fixtures import access as access
from benchpool_cluster.fixtures import cluster as cluster
from benchpool_cluster.fixtures import cluster_use as cluster_use
from benchpool_cluster.fixtures import control_plane as control_plane
