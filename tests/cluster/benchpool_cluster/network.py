"""The network of the real nodes: bridges, services and names, and their removal.

``network_policies`` decides which pods may communicate.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from benchpool_cluster import addresses, build
from benchpool_cluster.control_plane import ControlPlane

HOSTS = "bp-hosts"
TABLE = "benchpool-pods"
KERNEL = {
    "net.ipv4.ip_forward": "1",
    "net.bridge.bridge-nf-call-iptables": "1",
}
# Kernel settings that a kubelet or kube-proxy changes, so that they can be restored.
KEPT = (
    *KERNEL,
    "vm.overcommit_memory",
    "vm.panic_on_oom",
    "kernel.panic",
    "kernel.panic_on_oops",
    "kernel.keys.root_maxkeys",
    "kernel.keys.root_maxbytes",
    "net.ipv4.conf.all.route_localnet",
)
# Pods reach the outside with the machine's address; among themselves they keep their own.
OUTSIDE = f"""
table ip {TABLE} {{
  chain leaving {{
    type nat hook postrouting priority srcnat + 10;
    ip saddr {addresses.PODS} ip daddr != {{ {", ".join(addresses.ALL)} }} masquerade
  }}
}}
"""
COREDNS = """\
cluster.local in-addr.arpa ip6.arpa {{
  bind {address}
  errors
  kubernetes {{
    kubeconfig {kubeconfig}
    pods insecure
    ttl 1
  }}
}}
. {{
  bind {address}
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""


def pod_bridge(number: int) -> str:
    """Return the bridge of a node's pods; the network plug-in creates it with the first pod."""
    return f"bp-pods-{number}"


def prepare(folder: Path, nodes: int) -> None:
    """Give the control plane and each node an address, and enable forwarding between pods."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "kernel.json"
    if not kept.exists():
        kept.write_text(json.dumps({name: setting(name) for name in _known()}))
    for name, value in KERNEL.items():
        _file(name).write_text(value)
    run("ip", "link", "add", HOSTS, "type", "bridge")
    run("ip", "link", "set", HOSTS, "up")
    hosts = [addresses.CONTROL_PLANE, *(addresses.of_node(n + 1) for n in range(nodes))]
    for host in hosts:
        run("ip", "address", "add", f"{host}/32", "dev", HOSTS)
    run("nft", "-f", "-", given=OUTSIDE)


def start_proxy(plane: ControlPlane) -> None:
    """Start the only kube-proxy, which serves every node of the machine."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": addresses.PODS,
        "hostnameOverride": "node-1",
        "bindAddress": addresses.CONTROL_PLANE,
        "healthzBindAddress": f"{addresses.CONTROL_PLANE}:10256",
        "metricsBindAddress": f"{addresses.CONTROL_PLANE}:10249",
        "nodePortAddresses": [addresses.HOSTS],
        "clientConnection": {"kubeconfig": str(plane.access_of("proxy").kubeconfig)},
        "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "nftables": {"minSyncPeriod": "0.2s"},
    }
    file = plane.folder / "proxy.json"
    file.write_text(json.dumps(config))
    plane.processes.start("kube-proxy", [build.find("kube-proxy"), "--config", file])


def start_names(plane: ControlPlane) -> None:
    """Start CoreDNS for the names of this cluster's services and pods only."""
    file = plane.folder / "Corefile"
    config = COREDNS.format(address=addresses.DNS, kubeconfig=plane.access.kubeconfig)
    file.write_text(config)
    plane.processes.start("coredns", [build.find("coredns"), "-conf", file, "-dns.port", "53"])


def is_there() -> bool:
    """Return whether the addresses of a cluster are on this machine."""
    return Path("/sys/class/net", HOSTS).exists()


def remove(folder: Path, nodes: int) -> None:
    """Remove everything and restore the kernel's settings."""
    for table in _tables():
        run("nft", "delete", "table", *table.split()[1:])
    for bridge in (*(pod_bridge(n + 1) for n in range(nodes)), HOSTS):
        run("ip", "link", "delete", bridge)
    kept = folder / "kernel.json"
    if kept.exists():
        for name, value in json.loads(kept.read_text()).items():
            _file(name).write_text(value)
        kept.unlink()


def setting(name: str) -> str:
    """Return the current value of a kernel setting."""
    return _file(name).read_text().strip()


def run(*command: object, given: str | None = None) -> str:
    """Run a short command and return its output.

    A failure is ignored, because tests check the result.
    """
    words = [str(word) for word in command]
    return subprocess.run(words, input=given, capture_output=True, text=True).stdout


def _tables() -> list[str]:
    ours = ("benchpool", "kube-proxy")
    return [
        line
        for line in run("nft", "list", "tables").splitlines()
        if line.split()[2].startswith(ours)
    ]


def _known() -> list[str]:
    return [name for name in KEPT if _file(name).exists()]


def _file(name: str) -> Path:
    return Path("/proc/sys") / name.replace(".", "/")
