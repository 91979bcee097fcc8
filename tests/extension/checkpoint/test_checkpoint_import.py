"""Every job can import ``benchpool.checkpoint``, whatever its Python has installed."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from benchpool_scheduler.worker import job_package

USE = """
import sys
import benchpool
from benchpool import checkpoint
with checkpoint.commit(3) as folder:
    (folder / "state").write_text("3")
print(checkpoint.latest().name, getattr(benchpool, "whose", "lent"))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    target = tmp_path / "python" / "0" / job_package.NAME
    job_package.write(target, job_package.content())
    return target


def output(package: Path, tmp_path: Path, code: str, *more: str) -> str:
    """Return the output of code in a Python without site-packages, with ``more`` first on its
    path.
    """
    path = ":".join([*more, str(package)])
    env = {"PYTHONPATH": path, "BENCHPOOL_CHECKPOINT_DIR": str(tmp_path / "kept")}
    (tmp_path / "kept").mkdir(exist_ok=True)
    words = [sys.executable, "-S", "-c", code]
    done = subprocess.run(words, env=env, capture_output=True, text=True, cwd=tmp_path, check=False)
    return done.stdout if done.returncode == 0 else done.stderr


def test_python_without_benchpool_saves_and_resumes(package: Path, tmp_path: Path) -> None:
    assert output(package, tmp_path, USE).split()[1] == "lent"


def test_python_without_benchpool_reports_metrics(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "metrics.jsonl"
    code = f"import os; os.environ['BENCHPOOL_METRICS_FILE'] = {str(file)!r}\n"
    assert (
        output(package, tmp_path, f"{code}import benchpool; benchpool.log(loss=0.5, step=3)") == ""
    )
    assert '"values": {"loss": 0.5}, "step": 3' in file.read_text()


def test_missing_function_names_remedy(package: Path, tmp_path: Path) -> None:
    error = output(package, tmp_path, "import benchpool; benchpool.submit('train.py')")
    assert "benchpool.submit is not in this Python" in error
    assert "Install benchpool" in error


def test_installed_benchpool_replaces_job_package(package: Path, tmp_path: Path) -> None:
    installed = tmp_path / "site" / "benchpool"
    (installed / "checkpoint").mkdir(parents=True)
    (installed / "__init__.py").write_text("whose = 'installed'\n")
    (installed / "checkpoint" / "__init__.py").write_text("here = __file__\n")
    (installed / "more.py").write_text("x = 1\n")
    code = "import benchpool; from benchpool import checkpoint, more; print(benchpool.whose)"
    path = ["-c", f"import sys; sys.path.append({str(installed.parent)!r})\n{code}"]
    env = {"PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-S", *path], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "installed\n"


def test_empty_benchpool_folder_does_not_replace_job_package(package: Path, tmp_path: Path) -> None:
    (tmp_path / "more" / "benchpool").mkdir(parents=True)
    assert output(package, tmp_path, USE, str(tmp_path / "more")).split()[1] == "lent"


def test_job_package_holds_only_stdlib_modules_once() -> None:
    with zipfile.ZipFile(io.BytesIO(job_package.content())) as archive:
        names = archive.namelist()
        sources = {name: archive.read(name) for name in names}
    extension = Path(__file__).resolve().parents[3] / "extension"
    for name in names:
        places = {**job_package.INIT, **job_package.STARTUP}
        stands_for = {place: f"benchpool/{own}" for own, place in places.items()}
        path = stands_for.get(name, name)
        assert (extension / path).read_bytes() == sources[name]
    assert "benchpool/checkpoint/__init__.py" in names


def test_job_package_is_readable_and_written_once(package: Path) -> None:
    assert package.stat().st_mode & 0o777 == 0o644
    assert package.parent.stat().st_mode & 0o777 == 0o755
    before = package.stat().st_mtime_ns
    job_package.write(package, b"another")
    assert package.stat().st_mtime_ns == before
    assert not [each for each in os.listdir(package.parent) if each != job_package.NAME]
