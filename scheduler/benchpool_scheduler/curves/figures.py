"""Summary values of a line: last, least, greatest, and best if its goal is known.

Pure. ``last`` and ``best`` are the basis for comparing or searching jobs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import attrgetter
from typing import Literal

from benchpool_scheduler.curves.points import Line, Point

Goal = Literal["min", "max"]

LESS_IS_BETTER = frozenset(
    [
        "loss",
        "losses",
        "error",
        "errors",
        "err",
        "mae",
        "mse",
        "rmse",
        "mape",
        "nll",
        "perplexity",
        "ppl",
        "wer",
        "cer",
        "fid",
        "bpc",
        "bpb",
        "eer",
        "divergence",
        "kl",
        "regret",
    ]
)
MORE_IS_BETTER = frozenset(
    [
        "accuracy",
        "acc",
        "auc",
        "auroc",
        "auprc",
        "f1",
        "score",
        "precision",
        "recall",
        "bleu",
        "rouge",
        "meteor",
        "iou",
        "miou",
        "dice",
        "map",
        "ndcg",
        "mrr",
        "r2",
        "reward",
        "rewards",
        "return",
        "returns",
        "psnr",
        "ssim",
        "throughput",
        "correct",
        "success",
    ]
)
_WORD = re.compile(r"[a-z]+[0-9]?")


def last(line: Line) -> Point | None:
    """Return the newest point that is a number.

    >>> last((Point(1, 1, 3.0, 0.0), Point(1, 2, None, 1.0))).step
    1
    """
    return next((it for it in reversed(line) if it.value is not None), None)


def best(line: Line, goal: Goal) -> Point | None:
    """Return the least or the greatest point, the first of equal ones; None without a number.

    >>> line = (Point(1, 1, 3.0, 0.0), Point(1, 2, 2.0, 1.0), Point(1, 3, 2.0, 2.0))
    >>> best(line, "min").step, best(line, "max").step, best((), "min")
    (2, 1, None)
    """
    choose = min if goal == "min" else max
    numbers = (it for it in line if it.value is not None)
    return choose(numbers, key=attrgetter("value"), default=None)


def all_last(lines: Mapping[str, Line]) -> dict[str, float]:
    """Return the newest number of each name."""
    found = {name: last(line) for name, line in lines.items()}
    return {name: it.value for name, it in found.items() if it is not None and it.value is not None}


def goal_of(name: str) -> Goal | None:
    """Return the goal by the words of a metric name, or None if they do not show it.

    >>> goal_of("eval/loss"), goal_of("val_accuracy"), goal_of("lr"), goal_of("train/F1")
    ('min', 'max', None, 'max')
    """
    words = _WORD.findall(name.lower())
    for word in reversed(words):
        if word in LESS_IS_BETTER:
            return "min"
        if word in MORE_IS_BETTER:
            return "max"
    return None
