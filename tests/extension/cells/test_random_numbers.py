"""Seeds and random draws are included; a training that draws numbers is reported instead."""

from __future__ import annotations

from benchpool_support.cells import chosen, included


def test_draws_between_seed_and_selection_are_included() -> None:
    answer = chosen(
        "import numpy as np",
        "np.random.seed(0)",
        "noise = np.random.rand(3)",
        "unused = 1",
        "print(np.random.rand(2))",
    )
    assert [each.why for each in answer.cells] == [
        "imports `np`",
        "sets `np.random.seed` for later cells",
        "draws random numbers after the seed",
        None,
        "selected",
    ]


def test_later_seed_replaces_earlier_seed() -> None:
    answer = chosen(
        "import random",
        "random.seed(0)",
        "x = random.random()",
        "random.seed(1)",
        "print(random.random())",
    )
    assert included(answer) == [0, 3, 4]


def test_training_drawing_random_numbers_is_excluded_and_reported() -> None:
    answer = chosen(
        "import torch\nfrom torch import nn",
        "torch.manual_seed(0)",
        "x = torch.ones(2, 1)",
        "a = nn.Linear(1, 1)\n(a(x) ** 2).mean().backward()",
        "b = nn.Linear(1, 1)\nprint(b(x))",
    )
    assert included(answer) == [0, 1, 2, 4]
    (problem,) = answer.problems
    assert problem.level == "warning"
    assert problem.text == (
        "cell 4 draws random numbers after the seed too, but not in the job: "
        "the job draws different numbers than the notebook"
    )
