"""A real node: a kubelet with its own containerd, in its own mount namespace.

Several nodes share one machine, so every folder compiled into a kubelet or runtime is a different
folder in each node. A node's mounts disappear with its processes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchpool_cluster import addresses, build, cgroups, device_plugin, network
from benchpool_cluster.control_plane import ControlPlane
from benchpool_cluster.processes import in_time

PAUSE = "benchpool.test/pause:1"
PLUGINS = Path("/usr/lib/cni")
PRIVATE = """\
mount --bind {lib} /var/lib && mount --make-rshared /var/lib &&
mount --bind {log} /var/log && mount -t tmpfs tmpfs /run && mount --make-rshared /run &&
mkdir /run/netns && exec containerd --config {config}
"""
CONTAINERD = """\
version = 2
root = "{folder}/containerd/root"
state = "{folder}/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


@dataclass(frozen=True, slots=True)
class Node:
    """The ``number``-th node of a cluster, counted from 1."""

    number: int
    plane: ControlPlane

    @property
    def name(self) -> str:
        """Return the node's name in the cluster."""
        return f"node-{self.number}"

    @property
    def folder(self) -> Path:
        """Return the folder of the node's images, containers and logs."""
        return self.plane.folder / "nodes" / self.name

    @property
    def socket(self) -> Path:
        """Return the socket of its containerd."""
        return self.folder / "containerd.sock"

    @property
    def kubelet(self) -> str:
        """Return the process name of its kubelet."""
        return f"kubelet-{self.number}"

    @property
    def containerd(self) -> str:
        """Return the process name of its containerd."""
        return f"containerd-{self.number}"

    @property
    def gpus(self) -> str:
        """Return the process name of its device plug-in."""
        return f"gpus-{self.number}"

    @property
    def cgroup(self) -> str:
        """Return the cgroup of all its pods."""
        return f"benchpool-{self.name}"

    def start(self) -> None:
        """Start containerd, then the kubelet; the node is Ready some seconds later."""
        self.start_containerd()
        self.start_kubelet()

    def start_containerd(self) -> None:
        """Start containerd in its own mount namespace, and wait until it listens."""
        for part in ("lib/kubelet/device-plugins", "lib/cni", "log/pods", "log/containers", "cni"):
            (self.folder / part).mkdir(parents=True, exist_ok=True)
        (self.folder / "cni" / "10-bridge.conflist").write_text(json.dumps(self._pod_network()))
        config = self.folder / "containerd.toml"
        config.write_text(
            CONTAINERD.format(folder=self.folder, socket=self.socket, pause=PAUSE, plugins=PLUGINS)
        )
        script = PRIVATE.format(lib=self.folder / "lib", log=self.folder / "log", config=config)
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script]
        self.socket.unlink(missing_ok=True)
        self.plane.processes.start(self.containerd, command)
        self.plane.processes.wait_for(self.containerd, self._listens)

    def start_kubelet(self) -> None:
        """Start the kubelet in containerd's namespace."""
        cgroups.create(self.cgroup)
        config = self.folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet_settings()))
        kubeconfig = self.plane.access_of(self.name).kubeconfig
        command = [*self.inside(), build.find("kubelet"), "--config", config]
        command += ["--kubeconfig", kubeconfig, "--hostname-override", self.name]
        command += ["--node-ip", addresses.of_node(self.number)]
        self.plane.processes.start(self.kubelet, command)

    def start_gpus(self, count: int = 4) -> None:
        """Start the device plug-in with this number of simulated GPUs."""
        self.set_gpus(dict.fromkeys(device_plugin.uuids(self.name, count), "Healthy"))
        package = Path(__file__).resolve().parents[1]
        command = [*self.inside(), "env", f"PYTHONPATH={package}", sys.executable]
        command += ["-m", "benchpool_cluster.device_plugin", self.folder / "gpus.json"]
        self.plane.processes.start(self.gpus, command)

    def set_gpus(self, health: dict[str, str]) -> None:
        """Set the node's GPUs: by UUID, ``Healthy`` or ``Unhealthy``."""
        half = self.folder / "gpus.half"
        half.write_text(json.dumps(health))
        half.rename(self.folder / "gpus.json")

    def inside(self) -> list[object]:
        """Return the command prefix that runs a command in this node's mount namespace."""
        pid = self.plane.processes.pid(self.containerd)
        return ["nsenter", "--target", pid, "--mount", "--"]

    def stop(self) -> None:
        """Stop the node as a power cut would, and remove everything of it."""
        for name in (self.gpus, self.kubelet):
            self.plane.processes.kill(name)
        members = list(self._members())
        self.plane.processes.stop(self.containerd)
        for pid in members:
            end(pid)
        in_time(lambda: not any(_alive(pid) for pid in members), 60)
        cgroups.remove(self.cgroup)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket)) == 0

    def _members(self) -> Iterator[int]:
        """Yield all processes of the node: its pods' by cgroup, the rest by their command lines.

        They are found even if containerd or its parent process was killed.
        """
        yield from cgroups.members(self.cgroup)
        ours = os.readlink("/proc/self/ns/mnt")
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                inside = os.readlink(entry / "ns/mnt") != ours
                if inside and str(self.folder).encode() in (entry / "cmdline").read_bytes():
                    yield int(entry.name)

    def _pod_network(self) -> dict[str, object]:
        subnet = addresses.pods_of_node(self.number)
        bridge = {
            "type": "bridge",
            "bridge": network.pod_bridge(self.number),
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": subnet, "gateway": addresses.gateway(subnet)}]],
                "routes": [{"dst": "0.0.0.0/0"}],
                "dataDir": str(self.folder / "lib" / "cni"),
            },
        }
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}

    def _kubelet_settings(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": addresses.of_node(self.number),
            "healthzPort": 0,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(self.plane.access.authority)},
            },
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "clusterDNS": [addresses.DNS],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "containerRuntimeEndpoint": f"unix://{self.socket}",
            "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "makeIPTablesUtilChains": False,
            "nodeStatusUpdateFrequency": "5s",
            "nodeLeaseDurationSeconds": 12,
            "maxPods": 100,
            "kubeAPIQPS": 100,
            "kubeAPIBurst": 200,
        }


def end(pid: int) -> None:
    """Kill a process, which may already be gone."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
