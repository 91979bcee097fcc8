"""The control plane: etcd, API server, controller manager and scheduler, each a process.

It has no nodes. By default it listens on free ports of the loopback, so that several can run on one
machine.
"""

from __future__ import annotations

import json
import random
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from benchpool_cluster import build
from benchpool_cluster.access import Access
from benchpool_cluster.certificates import Authority, write_key
from benchpool_cluster.processes import Processes

SERVICES = "10.97.0.0/16"
FIRST_SERVICE = "10.97.0.1"
USERS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
}


@dataclass(frozen=True, slots=True)
class Timing:
    """Timeouts for silent nodes, in seconds; far shorter than in production."""

    node_grace: int = 16
    toleration: int = 8


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """A control plane with all its data in one folder."""

    folder: Path
    processes: Processes
    address: str = "127.0.0.1"
    nodes: Sequence[str] = ()
    timing: Timing = field(default_factory=Timing)

    def start(self) -> None:
        """Start every part; return when pods can be created."""
        self._prepare()
        self._start_etcd()
        self._start_api_server()
        self._start_controller_manager()
        self._start_scheduler()
        self.wait_ready()

    def stop(self) -> None:
        """Stop every part, the API server's data last."""
        for name in ("kube-scheduler", "kube-controller-manager"):
            self.processes.kill(name)
        for name in ("kube-apiserver", "etcd"):
            self.processes.kill(name)

    def restart(self, name: str) -> None:
        """Restart one part, as after a crash, and wait for the API."""
        self.processes.restart(name)
        self.wait_ready()

    def wait_ready(self, seconds: float = 60) -> None:
        """Wait until the API answers and the first service account exists."""
        path = "/api/v1/namespaces/default/serviceaccounts/default"

        def ready() -> bool:
            try:
                return self.access.find(path) is not None
            except httpx.HTTPError:
                return False

        self.processes.wait_for("kube-apiserver", ready, seconds)

    def kubectl(self, *words: str) -> list[str]:
        """Return the command line of ``kubectl`` here; it writes nothing to the home folder."""
        start = [str(build.find("kubectl")), "--kubeconfig", str(self.access.kubeconfig)]
        return [*start, "--cache-dir", str(self.folder / "kubectl"), *words]

    @property
    def access(self) -> Access:
        """Return the administrator's access."""
        return self.access_of("admin")

    def access_of(self, user: str) -> Access:
        """Return access as a user of the control plane, or as the node of this name."""
        known = json.loads((self.folder / "server.json").read_text())
        authority = self.folder / "certificates" / "ca.crt"
        file = self.folder / f"{user}.kubeconfig"
        return Access(known["server"], known["tokens"][user], authority, file)

    def _prepare(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = Authority.create(self.folder / "certificates")
        names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
        authority.serve("apiserver", [self.address, FIRST_SERVICE, *names])
        authority.caller("kubelet-client", "kubelet-client", ["system:masters"])
        write_key(authority.folder / "service-accounts.key")
        port = 6443 if not self._on_loopback else free_port(self.address)
        users = USERS | {name: (f"system:node:{name}", "system:nodes") for name in self.nodes}
        tokens = {name: secrets.token_hex(16) for name in users}
        known = {"server": f"https://{self.address}:{port}", "tokens": tokens}
        (self.folder / "server.json").touch(0o600)
        (self.folder / "server.json").write_text(json.dumps(known))
        lines = [f'{tokens[key]},{user},{user},"{group}"' for key, (user, group) in users.items()]
        (self.folder / "tokens.csv").touch(0o600)
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        for user in users:
            self.access_of(user).write_kubeconfig()

    @property
    def _on_loopback(self) -> bool:
        return self.address.startswith("127.")

    def _start_etcd(self) -> None:
        client, peer = (f"http://127.0.0.1:{free_port('127.0.0.1')}" for _ in range(2))
        (self.folder / "etcd.url").write_text(client)
        command = [build.find("etcd"), "--data-dir", self.folder / "etcd", "--unsafe-no-fsync"]
        command += ["--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        command += ["--initial-cluster", f"default={peer}", "--log-level", "warn"]
        self.processes.start("etcd", command)
        self.processes.wait_for("etcd", lambda: _answers(f"{client}/health"))

    def _start_api_server(self) -> None:
        keys = self.folder / "certificates"
        port = self.access.server.rpartition(":")[2]
        options = {
            "etcd-servers": (self.folder / "etcd.url").read_text(),
            "bind-address": self.address,
            "advertise-address": self.address,
            "secure-port": port,
            "tls-cert-file": keys / "apiserver.crt",
            "tls-private-key-file": keys / "apiserver.key",
            "client-ca-file": keys / "ca.crt",
            "kubelet-client-certificate": keys / "kubelet-client.crt",
            "kubelet-client-key": keys / "kubelet-client.key",
            "kubelet-preferred-address-types": "InternalIP",
            "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
            "service-account-key-file": keys / "service-accounts.key",
            "service-account-signing-key-file": keys / "service-accounts.key",
            "token-auth-file": self.folder / "tokens.csv",
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            "service-cluster-ip-range": SERVICES,
            "allow-privileged": "true",
            # On by default from 1.36.
            "feature-gates": "MutatingAdmissionPolicy=true",
            "runtime-config": "admissionregistration.k8s.io/v1beta1=true",
            "default-not-ready-toleration-seconds": self.timing.toleration,
            "default-unreachable-toleration-seconds": self.timing.toleration,
        }
        if self._on_loopback:  # loopback endpoints are not allowed, and no pod could reach them
            options["endpoint-reconciler-type"] = "none"
        self.processes.start("kube-apiserver", [build.find("kube-apiserver"), *flags(options)])
        self.processes.wait_for("kube-apiserver", self._api_is_ready)

    def _api_is_ready(self) -> bool:
        try:
            return self.access.call("GET", "/readyz").status_code == 200
        except httpx.HTTPError:
            return False

    def _start_controller_manager(self) -> None:
        keys = self.folder / "certificates"
        options = {
            "kubeconfig": self.access_of("controller-manager").kubeconfig,
            "use-service-account-credentials": "true",
            "service-account-private-key-file": keys / "service-accounts.key",
            "root-ca-file": keys / "ca.crt",
            "leader-elect": "false",
            "secure-port": 0,
            "node-monitor-period": "2s",
            "node-monitor-grace-period": f"{self.timing.node_grace}s",
            "kube-api-qps": 500,
            "kube-api-burst": 1000,
        }
        command = [build.find("kube-controller-manager"), *flags(options)]
        self.processes.start("kube-controller-manager", command)

    def _start_scheduler(self) -> None:
        file = self.folder / "scheduler.json"
        client = {"kubeconfig": str(self.access_of("scheduler").kubeconfig)}
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": client | {"qps": 1000, "burst": 2000},
            "leaderElection": {"leaderElect": False},
        }
        file.write_text(json.dumps(config))
        options = flags({"config": file, "secure-port": 0})
        self.processes.start("kube-scheduler", [build.find("kube-scheduler"), *options])


def flags(options: Mapping[str, object]) -> list[str]:
    """Return the options of a Kubernetes program as command-line flags."""
    return [f"--{name}={value}" for name, value in options.items()]


def free_port(address: str) -> int:
    """Return a port without a listener.

    It is below the kernel's range for outgoing connections, which could otherwise take the port of
    a server during its restart.
    """
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex((address, port)):
                return port


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.HTTPError:
        return False
