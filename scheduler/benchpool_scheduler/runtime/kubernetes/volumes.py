"""Nodes on which a volume claim can be used: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from benchpool_scheduler.runtime.kubernetes.cluster_views import NodeView

WHOSE = "hub.jupyter.org/username"
"""Annotation that KubeSpawner writes on claims and pods. The label of this name is escaped."""
MANY = "ReadWriteMany"


class _ClaimSpec(Struct, frozen=True, rename="camel"):
    volume_name: str = ""
    access_modes: list[str] = []


class _ClaimMeta(Struct, frozen=True):
    annotations: dict[str, str] | None = None


class RawClaim(Struct, frozen=True):
    """A claim as the API server sends it."""

    metadata: _ClaimMeta = _ClaimMeta()
    spec: _ClaimSpec = _ClaimSpec()


class _Name(Struct, frozen=True):
    name: str = ""


class _Affinity(Struct, frozen=True):
    required: dict[str, Any] | None = None


class _VolumeSpec(Struct, frozen=True, rename="camel"):
    node_affinity: _Affinity | None = None


class RawVolume(Struct, frozen=True):
    """A volume as the API server sends it."""

    metadata: _Name = _Name()
    spec: _VolumeSpec = _VolumeSpec()


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim: its bound volume, or empty, and its access modes.

    ``user`` is the owner of a home, from the Hub's annotation; empty for other claims.
    """

    volume: str
    access_modes: tuple[str, ...]
    user: str = ""

    @property
    def for_many(self) -> bool:
        """Whether pods on different nodes may write to it at the same time."""
        return MANY in self.access_modes


@dataclass(frozen=True, slots=True)
class VolumeView:
    """A volume: alternative terms of which a node must meet one; empty allows all nodes."""

    terms: tuple[Mapping[str, Any], ...]


def keep_claim(claim: RawClaim) -> ClaimView:
    """Return the cached fields of a claim."""
    written = claim.metadata.annotations or {}
    return ClaimView(claim.spec.volume_name, tuple(claim.spec.access_modes), written.get(WHOSE, ""))


def keep_volume(volume: RawVolume) -> VolumeView:
    """Return the cached fields of a volume."""
    affinity = volume.spec.node_affinity
    required = (affinity.required if affinity else None) or {}
    return VolumeView(tuple(required.get("nodeSelectorTerms") or ()))


def nodes_for(volume: VolumeView, nodes: Iterable[NodeView]) -> frozenset[str] | None:
    """Return the nodes that a volume allows, or None for all."""
    if not volume.terms:
        return None
    return frozenset(
        node.name for node in nodes if any(_meets(node, term) for term in volume.terms)
    )


def _meets(node: NodeView, term: Mapping[str, Any]) -> bool:
    fields = {"metadata.name": node.name}
    return all(_holds(one, node.labels) for one in term.get("matchExpressions") or ()) and all(
        _holds(one, fields) for one in term.get("matchFields") or ()
    )


def _holds(one: Mapping[str, Any], has: Mapping[str, str]) -> bool:
    """Return whether a requirement holds; comparisons of numbers count as not met.

    >>> _holds({"key": "zone", "operator": "In", "values": ["a", "b"]}, {"zone": "b"})
    True
    """
    key, values = str(one.get("key")), one.get("values") or ()
    match one.get("operator"):
        case "In":
            return has.get(key) in values
        case "NotIn":
            return has.get(key) not in values
        case "Exists":
            return key in has
        case "DoesNotExist":
            return key not in has
    return False
