"""``environment.json`` records the environment of a run and contains no secrets."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from benchpool.runner import code_facts, commit_facts
from benchpool_scheduler.contract.run_environment import NAME, RunEnvironment
from benchpool_support.runner_jobs import NotebookJob

CANARY = "canary-5f1d-canary-5f1d"


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "helper.py").write_text("x = 1\n")
    (folder / ".env").write_text("A=1\n")
    git(folder, "init", "-q", "-b", "ideas")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "first")
    return folder


# ------------------------------------------------------------------ parts of the record


def test_commit_is_recorded_with_diff(repository: Path) -> None:
    (repository / "helper.py").write_text("x = 2\n")
    found = commit_facts.commit_of(repository)
    assert found is not None
    assert (found.branch, found.cut) == ("ideas", False)
    assert "-x = 1\n+x = 2\n" in found.difference


def test_recorded_diff_is_bounded_and_redacted(repository: Path) -> None:
    (repository / ".env").write_text(f"A={CANARY}\n")
    secret = f"WANDB_API_KEY = '{CANARY}'\nlogin('hf_{CANARY}')\n"
    (repository / "helper.py").write_text(secret + "y = 'a'\n" * 100_000)
    found = commit_facts.commit_of(repository)
    assert found is not None
    assert CANARY not in found.difference
    assert "WANDB_API_KEY = …" in found.difference
    assert found.cut
    assert len(found.difference) == commit_facts.DIFFERENCE


def test_folder_without_repository_has_no_commit(tmp_path: Path) -> None:
    assert commit_facts.commit_of(tmp_path / "gone") is None


def test_named_data_files_are_hashed_except_secrets(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train.csv").write_text("a,b\n")
    (tmp_path / "kubeconfig").write_text(CANARY)
    code = "read('d/train.csv'); open('kubeconfig'); open('missing.csv'); f('d')"
    (found,) = code_facts.data_of([code], tmp_path)
    assert (found.path, found.bytes) == ("d/train.csv", 4)
    assert found.sha256 == hashlib.sha256(b"a,b\n").hexdigest()


def test_seeds_are_recorded_as_written() -> None:
    cells = [(1, "import random\nrandom.seed(7)\nseed()"), (4, "set_seed(SEED)\nx.key(1)")]
    found = [(each.cell, each.call, each.value) for each in code_facts.seeds_of(cells)]
    assert found == [(1, "random.seed", "7"), (4, "set_seed", "SEED")]


def test_recording_loads_no_modules_during_cells(repository: Path, tmp_path: Path) -> None:
    """Module imports in two threads at once can deadlock, which would fail the job."""
    (repository / "train.csv").write_text("1\n")
    program = """
import sys
from pathlib import Path
import benchpool.runner.notebook
from benchpool.runner.recording import Recording
Recording.load()
before = set(sys.modules)
folder, output = map(Path, sys.argv[1:])
cells = [(1, "import random\\nrandom.seed(7)\\nopen('train.csv')\\n%time x = 1")]
Recording(sys.executable, folder, cells, {"m.py": "x = 1"}, output)._run()
print(sorted(set(sys.modules) - before))
"""
    words = [sys.executable, "-c", program, str(repository), str(tmp_path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
    found = msgspec.json.decode((tmp_path / NAME).read_bytes(), type=RunEnvironment)
    assert found.commit is not None
    assert found.seeds != []


# ------------------------------------------------------------------ record of a job


@pytest.mark.slow
def test_run_records_its_environment(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", CANARY)
    module = str(repository / "helper.py")
    job = NotebookJob(repository.parent, {"modules": {module: "x = 1\n"}})
    (repository / "data.txt").write_text("1")
    status, _ = job.run("import random, helper\nrandom.seed(3)", "print(open('data.txt').read())")
    assert status == 0
    text = (job.root / "output" / NAME).read_bytes()
    found = msgspec.json.decode(text, type=RunEnvironment)
    assert found.python.endswith(".".join(map(str, sys.version_info[:3])))
    packages = {each.name.lower(): each for each in found.packages}
    assert packages["msgspec"].version == msgspec.__version__
    assert (packages["benchpool"].source or "").endswith("(editable)")
    assert found.commit is not None
    assert found.commit.branch == "ideas"
    assert [each.path for each in found.modules] == ["helper.py"]
    assert [each.path for each in found.data] == ["data.txt"]
    assert [(each.call, each.value) for each in found.seeds] == [("random.seed", "3")]
    assert "MY_TOKEN" in found.variables
    assert CANARY.encode() not in text


@pytest.mark.slow
def test_user_environment_file_is_kept(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / NAME).write_text('{"mine": 1}')
    assert NotebookJob(tmp_path).run("x = 1")[0] == 0
    assert (tmp_path / "output" / NAME).read_text() == '{"mine": 1}'
