"""Tracker runs reported by a job are shown only if they are harmless."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchpool_scheduler.worker import records, tracker_runs
from benchpool_scheduler.worker.supervisor import last_step


def read_back(folder: Path, *runs: object) -> list[tuple[str, str]]:
    (folder / records.RUNS).write_text(json.dumps({"python": "/p", "runs": list(runs)}))
    return [(run.tracker, run.url) for run in tracker_runs.read_runs(folder)]


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "file:///etc/passwd"),
        *("//evil.example/", "https://", "https:///x", "https://a:99999/", "https://a b/", ""),
        *(
            'https://a/"onclick=x',
            "https://a/<b>",
            "https://\u202ea/",
            "https://xn\u0430/",
            7,
            None,
        ),
        "https://a/" + "x" * 1000,
    ],
)
def test_unsafe_run_url_is_hidden(tmp_path: Path, url: object) -> None:
    assert read_back(tmp_path, {"tracker": "mlflow", "url": url}) == []


def test_credentials_are_removed_from_run_url(tmp_path: Path) -> None:
    run = {"tracker": "x", "url": "https://joe:s3cret@ml.example:5000/a?token=s3cret#/runs/1"}
    assert read_back(tmp_path, run) == [("x", "https://ml.example:5000/a#/runs/1")]


@pytest.mark.parametrize("tracker", ["<b>x</b>", "", "x" * 31, 'a"b', 7, None])
def test_invalid_tracker_name_is_rejected(tmp_path: Path, tracker: object) -> None:
    assert read_back(tmp_path, {"tracker": tracker, "url": "https://a/"}) == []


def test_newest_eight_run_urls_are_kept_once(tmp_path: Path) -> None:
    urls = [f"https://a/{n}" for n in [*range(12), 11, 5]]
    found = read_back(tmp_path, *({"tracker": "x", "url": url} for url in urls))
    assert [url for _, url in found] == [f"https://a/{n}" for n in [4, 6, 7, 8, 9, 10, 11, 5]]


def test_invalid_runs_file_is_ignored(tmp_path: Path) -> None:
    for text in ("", "[]", "{", '{"runs": 3}', '{"runs": [1, null, []]}', '{"python": 1}'):
        (tmp_path / records.RUNS).write_text(text)
        assert tracker_runs.read_runs(tmp_path) == ()
        assert last_step.left_open(str(tmp_path)) is None
