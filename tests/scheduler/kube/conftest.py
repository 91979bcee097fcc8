"""A real API server."""

from __future__ import annotations

from benchpool_cluster.fixtures import access as access
from benchpool_cluster.fixtures import control_plane as control_plane
