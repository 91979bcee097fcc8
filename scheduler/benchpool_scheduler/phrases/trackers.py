"""Texts for runs in a tracker."""

from __future__ import annotations

from urllib.parse import urlsplit

NAMES = {"mlflow": "MLflow", "wandb": "W&B", "trackio": "Trackio"}


def tracker_link(tracker: str, url: str) -> str:
    """Return the text of a link to a run: the tracker and its host.

    >>> tracker_link("mlflow", "https://ml.example.org:5000/#/experiments/1/runs/2")
    'MLflow on ml.example.org:5000'
    """
    return f"{NAMES.get(tracker, tracker)} on {urlsplit(url).netloc}"
