"""Versions of driver and CUDA toolkit, from the texts of machines with GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool.runner import driver_facts

CLOSED = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""
OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U22)
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
"""


@pytest.mark.parametrize(
    ("text", "version"),
    [(CLOSED, "535.183.01"), (OPEN, "570.86.15"), ("NVRM version: unknown", None), ("", None)],
)
def test_driver_version_is_read_from_kernel_text(
    tmp_path: Path, text: str, version: str | None
) -> None:
    file = tmp_path / "version"
    file.write_text(text)
    assert driver_facts.driver(file) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, "nvcc": {}}', "12.4.1"),
        ('{"cuda": "12.4"}', None),
        ("CUDA Version 10.2.89", None),
    ],
)
def test_toolkit_version_is_read_from_its_file(
    tmp_path: Path, text: str, version: str | None
) -> None:
    file = tmp_path / "version.json"
    file.write_text(text)
    assert driver_facts.toolkit(file) == version


def test_machine_without_driver_has_no_versions(tmp_path: Path) -> None:
    assert driver_facts.driver(tmp_path / "gone") is None
    assert driver_facts.toolkit(tmp_path / "gone") is None
