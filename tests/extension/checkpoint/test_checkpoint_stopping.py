"""All ranks get the same answer to ``should_stop``, and progress is written whole."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from benchpool import checkpoint
from benchpool.checkpoint import votes
from benchpool_support import torch_stand_in

RANK = """
import os, pathlib, sys, time
from benchpool import checkpoint
from benchpool.checkpoint import votes
rank, meet = int(os.environ["RANK"]), pathlib.Path(sys.argv[1])
def step(number):  # every rank waits for all others, as an all-reduce does
    (meet / f"{number}-{rank}").touch()
    until = time.monotonic() + 120
    while len(list(meet.glob(f"{number}-*"))) < int(os.environ["WORLD_SIZE"]):
        if time.monotonic() > until:
            sys.exit("deadlock")
        time.sleep(0.001)
for number in range(100000):
    step(number)
    if number in (20, 40) and rank == 0:
        print("there", flush=True)
    if checkpoint.should_stop():
        with checkpoint.commit(number, together=True) as folder:
            (folder / f"rank-{rank}").write_text(str(number))
        print(number, flush=True)
        sys.exit(75)
"""


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_without_process_group_stop_at_same_step(tmp_path: Path, ranks: int) -> None:
    """The ranks get their notices at different times and would deadlock if they stopped
    separately.
    """
    meet = tmp_path / "meet"
    meet.mkdir()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(meet)],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": str(ranks),
                "BENCHPOOL_ATTEMPT": "1",
                "BENCHPOOL_NOTICE_FILE": str(tmp_path / f"notice-{rank}"),
                "BENCHPOOL_CHECKPOINT_DIR": str(tmp_path / "checkpoint"),
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    assert workers[0].stdout is not None
    for notified in (1, 0):
        assert workers[0].stdout.readline() == "there\n"
        (tmp_path / f"notice-{notified}").write_text("{}")
    answers = [worker.communicate(timeout=240)[0].split()[-1] for worker in workers]
    assert len(set(answers)) == 1
    assert [worker.returncode for worker in workers] == [75] * ranks
    saved = tmp_path / "checkpoint" / "00000001"
    texts = {path.read_text() for path in saved.glob("rank-*")}
    assert texts == {answers[0]}
    assert len(list(saved.glob("rank-*"))) == ranks


def _child(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_sigterm_sets_flag_only_after_first_query(tmp_path: Path) -> None:
    notice = {"BENCHPOOL_NOTICE_FILE": str(tmp_path / "notice")}
    asked = _child(
        """
        import os, signal
        from benchpool import checkpoint
        print(checkpoint.should_stop())
        os.kill(os.getpid(), signal.SIGTERM)
        print(checkpoint.should_stop())
        """,
        **notice,
    )
    assert asked.stdout.split() == ["False", "True"]
    never = _child(
        """
        import os, signal
        from benchpool import checkpoint
        os.kill(os.getpid(), signal.SIGTERM)
        print("never here")
        """,
        **notice,
    )
    assert (never.returncode, never.stdout) == (-signal.SIGTERM, "")


def test_signal_handler_of_program_is_kept(tmp_path: Path) -> None:
    own = _child(
        """
        import os, signal
        from benchpool import checkpoint
        signal.signal(signal.SIGTERM, lambda *_: print("own"))
        checkpoint.should_stop()
        with checkpoint.commit(1): pass
        os.kill(os.getpid(), signal.SIGTERM)
        """,
        BENCHPOOL_NOTICE_FILE=str(tmp_path / "notice"),
        BENCHPOOL_CHECKPOINT_DIR=str(tmp_path / "checkpoint"),
    )
    assert own.stdout == "own\n"


@pytest.mark.parametrize(
    "deadline", ["2990-01-02T03:04:05Z", "2990-01-02T03:04:05+00:00", 32188244645.0]
)
def test_deadline_is_read_as_text_or_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deadline: object
) -> None:
    notice = tmp_path / "notice"
    monkeypatch.setenv("BENCHPOOL_NOTICE_FILE", str(notice))
    assert checkpoint.deadline() is None
    notice.write_text(json.dumps({"kind": "pause", "deadline": deadline}))
    until = checkpoint.deadline()
    assert until is not None
    assert until.isoformat() == "2990-01-02T03:04:05+00:00"
    left = checkpoint.remaining()
    assert left is not None
    assert left > 0


def test_progress_is_written_whole_and_never_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.json"
    monkeypatch.setenv("BENCHPOOL_PROGRESS_FILE", str(path))
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    checkpoint.progress(2.0, "a\nb" + "x" * 1000, {"loss": 0.5, "bad": float("nan")})
    progress = json.loads(path.read_text())
    assert progress["fraction"] == 1.0
    assert progress["text"].startswith("a b")
    assert len(progress["text"]) == 200
    assert progress["metrics"] == {"loss": 0.5}
    checkpoint.progress("no number")  # type: ignore[arg-type]
    assert json.loads(path.read_text())["fraction"] is None
    monkeypatch.setenv("LOCAL_RANK", "1")
    checkpoint.progress(0.1)
    assert json.loads(path.read_text())["fraction"] is None
    assert [each.name for each in tmp_path.iterdir()] == ["progress.json"]


def test_notice_of_one_rank_stops_process_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = torch_stand_in.Group([(0, 0), (1, 0), (0, 0)], rank=1)
    torch_stand_in.install(monkeypatch, group=group)
    monkeypatch.setenv("BENCHPOOL_NOTICE_FILE", str(tmp_path / "notice"))
    monkeypatch.setattr(votes, "stopping", False)
    answers = [checkpoint.should_stop() for _ in range(3)]
    assert answers == [False, True, True]
    assert votes.rank() == 1
