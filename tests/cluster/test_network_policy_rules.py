"""Packet rules that the enforcer derives from network policies, without a network."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster.policy_rules import World, matches, table

Object = dict[str, Any]


def pod(name: str, address: str, *, space: str = "team", port: int = 0) -> Object:
    ports = [{"name": "web", "containerPort": port}] if port else []
    return {
        "metadata": {"name": name, "namespace": space, "labels": {"app": name}},
        "spec": {"containers": [{"ports": ports}]},
        "status": {"podIP": address, "phase": "Running"},
    }


SPACES: list[Object] = [
    {"metadata": {"name": "team", "labels": {"kind": "ours"}}},
    {"metadata": {"name": "hub", "labels": {"kind": "hub"}}},
]
WORLD = World.of(
    [
        pod("server", "10.0.1.1", port=8888),
        pod("friend", "10.0.1.2"),
        pod("hub", "10.0.2.1", space="hub"),
        pod("friend", "10.0.2.2", space="hub"),
    ],
    SPACES,
)
SERVER = {"matchLabels": {"app": "server"}}


def policy(**spec: object) -> Object:
    return {
        "metadata": {"name": "one", "namespace": "team"},
        "spec": {"podSelector": SERVER} | spec,
    }


def rules(chain: str, *policies: Object) -> list[str]:
    """Return the lines of one chain."""
    body = table(WORLD, list(policies)).partition(f"chain {chain} {{")[2].partition("}")[0]
    return [line.strip() for line in body.strip().splitlines()]


@pytest.mark.parametrize(
    ("peers", "allowed"),
    [
        ([], ["return"]),
        ([{"podSelector": {"matchLabels": {"app": "friend"}}}], ["ip saddr 10.0.1.2 return"]),
        ([{"podSelector": {}}], ["ip saddr 10.0.1.1 return", "ip saddr 10.0.1.2 return"]),
        (
            [{"namespaceSelector": {"matchLabels": {"kind": "hub"}}}],
            ["ip saddr 10.0.2.1 return", "ip saddr 10.0.2.2 return"],
        ),
        (
            [
                {
                    "namespaceSelector": {"matchLabels": {"kind": "hub"}},
                    "podSelector": {"matchLabels": {"app": "hub"}},
                }
            ],
            ["ip saddr 10.0.2.1 return"],
        ),
        (
            [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.1.0/24"]}}],
            ["ip saddr 10.0.0.0/8 ip saddr != 10.0.1.0/24 return"],
        ),
    ],
)
def test_selected_pod_accepts_only_allowed_peers(peers: list[Object], allowed: list[str]) -> None:
    rule = {"from": peers} if peers else {}
    assert rules("ingress-0", policy(ingress=[rule])) == [*allowed, "drop"]


@pytest.mark.parametrize(
    ("port", "words"),
    [
        ({"port": 80}, "tcp dport 80 return"),
        ({"port": 80, "endPort": 90, "protocol": "UDP"}, "udp dport 80-90 return"),
        ({"port": "web"}, "tcp dport 8888 return"),
        ({"protocol": "SCTP"}, "ip protocol sctp return"),
    ],
)
def test_ports_are_numbers_ranges_or_names(port: Object, words: str) -> None:
    assert rules("ingress-0", policy(ingress=[{"ports": [port]}])) == [words, "drop"]


def test_policy_without_rules_blocks_ingress_only() -> None:
    assert rules("ingress-0", policy()) == ["drop"]
    assert "egress" not in table(WORLD, [policy()])


def test_unreachable_addresses_are_skipped() -> None:
    both = [{"ipBlock": {"cidr": "::/0"}}, {"ipBlock": {"cidr": "10.0.2.0/24"}}]
    sending = policy(policyTypes=["Egress"], egress=[{"to": both}])
    assert rules("egress-0", sending) == ["ip daddr 10.0.2.0/24 return", "drop"]


def test_policies_of_one_pod_add_up() -> None:
    both = [policy(ingress=[{"ports": [{"port": number}]}]) for number in (1, 2)]
    allowed = ["tcp dport 1 return", "tcp dport 2 return", "drop"]
    assert rules("ingress-0", *both) == allowed


def test_egress_rules_match_destinations() -> None:
    to_hub = {"to": [{"ipBlock": {"cidr": "10.0.2.0/24"}}], "ports": [{"port": 53}]}
    sending = policy(policyTypes=["Egress"], egress=[to_hub])
    assert rules("egress-0", sending) == ["ip daddr 10.0.2.0/24 tcp dport 53 return", "drop"]
    assert "ip saddr 10.0.1.1 jump egress-0" in rules("all-forward", sending)
    assert "ip saddr 10.0.1.1 jump egress-0" in rules("all-input", sending)


def test_ended_and_host_network_pods_are_ignored() -> None:
    ended, host = pod("ended", "10.0.1.8"), pod("host", "10.0.1.9")
    ended["status"]["phase"] = "Succeeded"
    host["spec"]["hostNetwork"] = True
    assert World.of([ended, host], SPACES).pods == []


@pytest.mark.parametrize(
    ("operator", "values", "holds"),
    [
        ("In", ["a", "b"], True),
        ("NotIn", ["a"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
    ],
)
def test_selectors_support_expressions(operator: str, values: list[str], holds: bool) -> None:
    wanted = {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}
    assert matches(wanted, {"app": "a"}) is holds
