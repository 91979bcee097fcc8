"""The addresses of the cluster with real nodes; they are invisible outside the machine."""

from __future__ import annotations

import ipaddress

from benchpool_cluster.control_plane import SERVICES

HOSTS = "10.98.0.0/24"
"""Addresses of the API server, CoreDNS and the nodes, each alone on an empty bridge."""

CONTROL_PLANE = "10.98.0.1"
DNS = CONTROL_PLANE
PODS = "10.98.0.0/16"
"""Addresses of all nodes and pods."""

ALL = (SERVICES, PODS)


def of_node(number: int) -> str:
    """Return the address of a node; the first node is number 1."""
    return f"10.98.0.{10 + number}"


def pods_of_node(number: int) -> str:
    """Return the subnet of a node's pods."""
    return f"10.98.{number}.0/24"


def gateway(subnet: str) -> str:
    """Return a subnet's first address, which is its bridge."""
    return str(ipaddress.ip_network(subnet)[1])
