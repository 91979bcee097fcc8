"""Files sent with a job: ignore files as in git, secrets, links, limits."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.client.snapshot import FolderSnapshot, SnapshotLimits, take, upload
from benchpool_scheduler.errors import InvalidInput, TooLarge
from benchpool_support.examples import examples
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow


def lay(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def paths(snapshot: FolderSnapshot) -> list[str]:
    return [file.path for file in snapshot.files]


def why(snapshot: FolderSnapshot) -> dict[str, str]:
    return {left.path: left.why for left in snapshot.left_out}


def test_contents_are_named_by_hash_and_stay_executable(tmp_path: Path) -> None:
    lay(tmp_path, {"run.sh": "echo", "a/data.txt": "1"})
    (tmp_path / "run.sh").chmod(0o755)
    found = take(tmp_path)
    data, run = found.files
    assert (data.path, data.sha256) == ("a/data.txt", hashlib.sha256(b"1").hexdigest())
    assert (run.executable, data.executable) == (True, False)
    assert found.bytes == 5


def test_environments_caches_and_version_control_are_excluded(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "train.py": "",
            ".git/config": "",
            "node_modules/a.js": "",
            "__pycache__/a.pyc": "",
            "env/pyvenv.cfg": "",
            "env/lib/x.py": "",
            "conda/conda-meta/history": "",
            ".ipynb_checkpoints/a": "",
            "benchpool-results/old/model": "",
        },
    )
    found = take(tmp_path)
    assert paths(found) == ["train.py"]
    assert why(found)["env"] == "a virtual environment"
    assert why(found)["benchpool-results"] == "results of earlier jobs"


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "key.pem", "id_rsa", ".netrc", ".aws/credentials", "a/.npmrc"]
)
def test_possible_secrets_are_excluded_unless_included_by_name(tmp_path: Path, name: str) -> None:
    lay(tmp_path, {name: "x", "train.py": ""})
    assert paths(take(tmp_path)) == ["train.py"]
    top = name.split("/")[0] if name.startswith(".aws") else Path(name).name
    lay(tmp_path, {".benchpoolignore": f"!{top}\n"})
    assert name in paths(take(tmp_path))


def test_private_key_is_excluded_under_any_name(tmp_path: Path) -> None:
    lay(tmp_path, {"notes.txt": "-----BEGIN OPENSSH PRIVATE KEY-----\nabc", "train.py": ""})
    found = take(tmp_path)
    assert paths(found) == ["train.py"]
    assert why(found) == {"notes.txt": "holds a private key"}


def test_benchpool_ignore_file_applies_after_gitignore(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            ".gitignore": "*.bin\n/out/\n",
            ".benchpoolignore": "!keep.bin\n*.md\n",
            "keep.bin": "",
            "drop.bin": "",
            "README.md": "",
            "out/a": "",
            "deep/out/a": "",
        },
    )
    found = take(tmp_path)
    assert paths(found) == [".benchpoolignore", ".gitignore", "deep/out/a", "keep.bin"]


def test_ignore_files_above_apply_inside_repository(tmp_path: Path) -> None:
    lay(tmp_path, {".git/HEAD": "", ".gitignore": "*.log\n", "sub/a.log": "", "sub/a.py": ""})
    assert paths(take(tmp_path / "sub")) == ["a.py"]


def test_named_script_is_sent_despite_ignore_rule(tmp_path: Path) -> None:
    lay(tmp_path, {".gitignore": "*.py\n", "train.py": "", "other.py": ""})
    assert paths(take(tmp_path, must=["train.py"])) == [".gitignore", "train.py"]


@pytest.mark.parametrize("name", ["missing.py", "../outside.py", "."])
def test_missing_named_script_is_rejected(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    lay(tmp_path, {"root/train.py": "", "outside.py": ""})
    with pytest.raises(InvalidInput):
        take(root, must=[name])


def test_links_are_followed_only_inside_folder(tmp_path: Path) -> None:
    root = tmp_path / "root"
    lay(tmp_path, {"root/data/a.txt": "a", "outside/secret.txt": "s"})
    (root / "link.txt").symlink_to("data/a.txt")
    (root / "alias").symlink_to("data")
    (root / "leaves").symlink_to(tmp_path / "outside")
    (root / "leaves.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (root / "data" / "loop").symlink_to("..")
    (root / "broken").symlink_to("nowhere")
    found = take(root)
    assert paths(found) == ["alias/a.txt", "data/a.txt", "link.txt"]
    assert why(found)["leaves"] == "a link that leaves the folder"
    assert why(found)["leaves.txt"] == "a link that leaves the folder"
    assert why(found)["data/loop"] == "a link to a folder above it"
    assert why(found)["broken"] == "a broken link"


def test_named_script_linking_outside_is_rejected(tmp_path: Path) -> None:
    lay(tmp_path, {"outside.py": "", "root/a.py": ""})
    (tmp_path / "root" / "train.py").symlink_to(tmp_path / "outside.py")
    with pytest.raises(InvalidInput):
        take(tmp_path / "root", must=["train.py"])


def test_pipes_and_invalid_names_are_excluded_with_reason(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "new\nline").write_text("")
    (tmp_path / os.fsdecode(b"caf\xe9")).write_text("")
    found = take(tmp_path)
    assert paths(found) == []
    assert why(found) == {
        "pipe": "no plain file",
        "new\\nline": "a name with a control character",
        "caf\\xe9": "a name that is not valid UTF-8",
    }


def test_oversized_file_is_excluded_with_both_sizes(tmp_path: Path) -> None:
    lay(tmp_path, {"big.bin": "x" * 3000, "train.py": ""})
    found = take(tmp_path, limits=SnapshotLimits(file_bytes=2048))
    assert paths(found) == ["train.py"]
    assert why(found)["big.bin"] == "2.9 KiB, the limit for one file is 2.0 KiB"


def test_oversized_folder_names_largest_files(tmp_path: Path) -> None:
    lay(tmp_path, {"a.bin": "x" * 3000, "b.bin": "x" * 1000, "c": "x"})
    with pytest.raises(TooLarge) as refused:
        take(tmp_path, limits=SnapshotLimits(total_bytes=2048))
    assert "Largest: a.bin 2.9 KiB, b.bin 1000 bytes, c 1 bytes." in refused.value.message
    assert refused.value.numbers == {"bytes": 4001, "limit": 2048, "files": 3}


def test_too_many_files_are_rejected_before_reading_all(tmp_path: Path) -> None:
    lay(tmp_path, {f"{number}.txt": "" for number in range(30)})
    with pytest.raises(TooLarge) as refused:
        take(tmp_path, limits=SnapshotLimits(files=10))
    assert refused.value.numbers == {"limit": 10}


def test_known_content_is_not_uploaded_again(service: Served, tmp_path: Path) -> None:
    lay(tmp_path / "p", {"a.txt": "same", "b.txt": "same", "c.txt": "other"})
    found = take(tmp_path / "p")
    with service.client("susan") as susan:
        assert upload(susan, found.contents) == 2
        assert upload(susan, found.contents) == 0


NAMES = st.sampled_from(["a", "b", "c.log", "d.txt", "keep.log"])
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PATTERNS = st.lists(
    st.sampled_from(
        ["*.log", "!keep.log", "/a", "a/", "b/*", "**/c.log", "d.txt", "!d.txt", "a/b", "/b/", "c*"]
    ),
    max_size=4,
)


SIGNS = st.text("ab*?[]!^-:\\/ .é", max_size=6)
ODD_PLACES = ["a", "b", "aa/b", "ab/a/b", "b a", "a ", "a]b", "-", "!a", "^", "é", ".a/b/a.b", "[a"]


def as_git_lists(root: Path) -> list[str]:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "--others", "--exclude-standard", "-z"],
        check=True,
        capture_output=True,
    ).stdout
    return sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)


with_git = pytest.mark.skipif(shutil.which("git") is None, reason="compares with git itself")


@with_git
@settings(max_examples=examples(60), deadline=None)
@given(places=st.sets(PLACES, max_size=8), top=PATTERNS, inner=PATTERNS)
@example(places={"d.txt/c.log/a"}, top=["*.log", "!d.txt"], inner=[])
@example(places={"a/b", "a/a/b"}, top=["a/"], inner=["!b"])
def test_ignore_files_match_git(
    tmp_path_factory: pytest.TempPathFactory, places: set[str], top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    for place in sorted(places):
        path = root / place
        if not any((root / above).is_file() for above in Path(place).parents) and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
    (root / ".gitignore").write_text("\n".join(top))
    if (root / "a").is_dir():
        (root / "a" / ".gitignore").write_text("\n".join(inner))
    listed = as_git_lists(root)
    assert paths(take(root)) == listed
    if (root / "a").is_dir():
        below = [name.removeprefix("a/") for name in listed if name.startswith("a/")]
        assert paths(take(root / "a")) == below


@with_git
@settings(max_examples=examples(200), deadline=None)
@given(lines=st.lists(SIGNS, min_size=1, max_size=3))
@example(lines=["a\\"])
@example(lines=["a[", "[]a]?b", "[!a]", "[[:alpha:]-]", "[b-[:x:]*"])
@example(lines=["a**/b", "!**/a/**", "ab/**"])
@example(lines=["b\\ a ", "a\\  ", "?", "\r", "a\x0cb"])
def test_every_pattern_matches_git(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    lay(root, dict.fromkeys(ODD_PLACES, ""))
    (root / ".gitignore").write_bytes("\n".join(lines).encode())
    assert paths(take(root)) == as_git_lists(root)


def test_program_files_in_home_folder_are_excluded(tmp_path: Path) -> None:
    for name in (".jupyter/lab/workspaces/default.json", ".local/share/x", ".config/y", "train.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    taken = take(tmp_path)
    assert [file.path for file in taken.files] == ["train.py"]
