"""Free memory of a process: that of the machine and of the cgroups with limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool.checkpoint import free_memory

MACHINE = {"meminfo": "MemTotal: 900 kB\nMemFree: 2 kB\nMemAvailable:   500 kB\n"}
V1 = "memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat"


def written(folder: Path, texts: dict[str, str]) -> Path:
    """Write files below a folder and return it."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize(
    ("of_process", "cgroups", "available"),
    [
        ("0::/\n", {}, 512_000),
        ("0::/job\n", {"job/memory.max": "max\n", "job/memory.current": "1\n"}, 512_000),
        ("0::/job\n", {"job/memory.max": "1000\n", "job/memory.current": "400\n"}, 600),
        (
            "0::/job\n",
            {
                "job/memory.max": "1000\n",
                "job/memory.current": "900\n",
                "job/memory.stat": "anon 650\ninactive_file 250\n",
            },
            350,
        ),
        (
            "0::/lab/job\n",
            {
                "lab/memory.max": "1000\n",
                "lab/memory.current": "950\n",
                "lab/job/memory.max": "1000\n",
                "lab/job/memory.current": "100\n",
            },
            50,
        ),
        ("0::/job\n", {"job/memory.max": "100\n", "job/memory.current": "120\n"}, 0),
        # In a container: the path is the host's, and the files are at the top.
        ("0::/../pod\n", {"memory.max": "1000\n", "memory.current": "300\n"}, 700),
        (
            "5:cpu:/\n4:memory:/job\n0::/\n",
            {f"memory/job/{name}": text for name, text in zip(V1, ("1000", "1", ""), strict=True)},
            999,
        ),
        (
            "4:cpu,memory:/kubepods/pod\n",
            {
                f"memory/{name}": text
                for name, text in zip(V1, ("1000", "900", "total_inactive_file 70"), strict=True)
            },
            170,
        ),
    ],
)
def test_free_memory_is_limited_by_cgroups(
    tmp_path: Path, of_process: str, cgroups: dict[str, str], available: int
) -> None:
    proc = written(tmp_path / "proc", {**MACHINE, "self/cgroup": of_process})
    assert free_memory.available(proc, written(tmp_path / "cgroup", cgroups)) == available


def test_unknown_free_memory_is_zero(tmp_path: Path) -> None:
    assert free_memory.available(tmp_path, tmp_path) == 0


def test_free_memory_of_this_process_is_known() -> None:
    assert free_memory.available() > 0
