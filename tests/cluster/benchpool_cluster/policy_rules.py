"""Convert network policies to packet rules: from the API's lists to the text of a table.

A pod selected by a policy receives (or sends) only what some policy allows; other pods are
unrestricted. A packet passes if its sender may send it and its receiver may receive it. Addresses
are those after the translation of services, so the rules contain pods only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]
TABLE = "benchpool-policies"
SIDES = {"Ingress": ("from", "saddr", "daddr"), "Egress": ("to", "daddr", "saddr")}


@dataclass(frozen=True, slots=True)
class World:
    """Objects that policies refer to: pods with an address, and the labels of namespaces."""

    pods: list[Object]
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, pods: list[Object], namespaces: list[Object]) -> World:
        """Return the world from the API's lists."""
        alive = [
            pod
            for pod in pods
            if pod["status"].get("podIP")
            and not pod["spec"].get("hostNetwork")
            and pod["status"].get("phase") in ("Pending", "Running")
        ]
        labels = {one["metadata"]["name"]: one["metadata"].get("labels", {}) for one in namespaces}
        return cls(alive, labels)

    def selected(self, policy: Object) -> list[Object]:
        """Return the pods that a policy selects."""
        space = policy["metadata"]["namespace"]
        return [
            pod
            for pod in self.pods
            if pod["metadata"]["namespace"] == space
            and matches(policy["spec"].get("podSelector", {}), pod["metadata"].get("labels", {}))
        ]

    def peers(self, peer: Object, space: str) -> list[Object]:
        """Return the pods of one peer of a rule, relative to the policy's namespace."""
        spaces = {space}
        if "namespaceSelector" in peer:
            wanted = peer["namespaceSelector"]
            spaces = {name for name, labels in self.namespaces.items() if matches(wanted, labels)}
        return [
            pod
            for pod in self.pods
            if pod["metadata"]["namespace"] in spaces
            and matches(peer.get("podSelector", {}), pod["metadata"].get("labels", {}))
        ]


def matches(selector: Object, labels: dict[str, str]) -> bool:
    """Return whether labels match a selector; an empty selector matches everything."""
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    tests: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, _: key in labels,
        "DoesNotExist": lambda key, _: key not in labels,
    }
    return all(
        tests[one["operator"]](one["key"], one.get("values", []))
        for one in selector.get("matchExpressions", [])
    )


def table(world: World, policies: list[Object]) -> str:
    """Return the whole table, which replaces the previous table in one step."""
    chains: list[str] = []
    jumps: list[str] = ["ct state established,related accept"]
    for side, (_, _, own) in SIDES.items():
        for number, (address, allowed) in enumerate(_isolated(world, policies, side).items()):
            name = f"{side.lower()}-{number}"
            chains.append(_chain(name, [*allowed, "drop"]))
            jumps.append(f"ip {own} {address} jump {name}")
    for hook in ("forward", "input"):
        head = f"type filter hook {hook} priority -10; policy accept;"
        chains.append(_chain(f"all-{hook}", [head, *jumps]))
    text = "\n".join(chains)
    return f"table ip {TABLE} {{}}\ndelete table ip {TABLE}\ntable ip {TABLE} {{\n{text}\n}}\n"


def _chain(name: str, lines: list[str]) -> str:
    inner = "\n".join(f"    {line}" for line in lines)
    return f"  chain {name} {{\n{inner}\n  }}"


def _isolated(world: World, policies: list[Object], side: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for policy in policies:
        if side not in policy["spec"].get("policyTypes", ["Ingress"]):
            continue
        for pod in world.selected(policy):
            lines = found.setdefault(pod["status"]["podIP"], [])
            for rule in policy["spec"].get(side.lower()) or []:
                lines += _allowed(world, policy, rule, side, pod)
    return found


def _allowed(world: World, policy: Object, rule: Object, side: str, pod: Object) -> Iterator[str]:
    word, direction, _ = SIDES[side]
    peers = rule.get(word) or [None]
    for peer in peers:
        if peer is None:
            targets: list[tuple[str, list[Object]]] = [("", [])]
        elif ":" in peer.get("ipBlock", {}).get("cidr", ""):
            targets = []  # pods here have no IPv6 addresses
        elif "ipBlock" in peer:
            targets = [(_block(peer["ipBlock"], direction), [])]
        else:
            found = world.peers(peer, policy["metadata"]["namespace"])
            targets = [(f"ip {direction} {one['status']['podIP']}", [one]) for one in found]
        for where, named in targets:
            holders = [pod] if side == "Ingress" else named
            for port in _ports(rule.get("ports"), holders):
                yield " ".join(part for part in (where, port, "return") if part)


def _block(block: Object, direction: str) -> str:
    but = "".join(f" ip {direction} != {one}" for one in block.get("except", []))
    return f"ip {direction} {block['cidr']}{but}"


def _ports(ports: list[Object] | None, holders: list[Object]) -> Iterator[str]:
    if not ports:
        yield ""
    for one in ports or []:
        protocol = one.get("protocol", "TCP").lower()
        port = one.get("port")
        if port is None:
            yield f"ip protocol {protocol}"
        elif isinstance(port, int):
            end = f"-{one['endPort']}" if "endPort" in one else ""
            yield f"{protocol} dport {port}{end}"
        else:
            for number in _numbers(port, holders):
                yield f"{protocol} dport {number}"


def _numbers(name: str, holders: list[Object]) -> Iterator[int]:
    for pod in holders:
        for container in pod["spec"]["containers"]:
            for port in container.get("ports", []):
                if port.get("name") == name:
                    yield port["containerPort"]
