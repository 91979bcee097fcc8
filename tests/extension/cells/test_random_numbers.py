"""Seeds and random draws are included; a training that draws numbers is reported instead."""

from __future__ import annotations

import pytest

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


LOADER = "import torch\nfrom torch.utils.data import DataLoader\ndl = DataLoader(data)"


@pytest.mark.parametrize(
    "between",
    [
        "for batch in dl: break",
        "for number, batch in enumerate(dl): break",
        "every = list(dl)",
        "sizes = [len(batch) for batch in dl]",
        "show(dl)",
    ],
)
def test_pass_over_loader_draws_random_numbers(between: str) -> None:
    show = "def show(loader):\n    for batch in loader: print(batch)"
    seed = "torch.manual_seed(0)"
    answer = chosen("data = [1]", f"{LOADER}\n{show}", seed, between, "print(torch.rand(1))")
    assert included(answer) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("between", ["len(dl)", "print(dl.batch_size)"])
def test_question_to_loader_draws_nothing(between: str) -> None:
    seed = "torch.manual_seed(0)"
    answer = chosen("data = [1]", LOADER, seed, between, "print(torch.rand(1))")
    assert 3 not in included(answer)
    assert not answer.problems


def test_pass_over_loader_with_model_is_excluded_and_reported() -> None:
    net = "net = torch.nn.Linear(1, 1)"
    loop = "for batch in dl: print(net(batch))"
    seed = "torch.manual_seed(0)"
    answer = chosen("data = [1]", LOADER, net, seed, loop, "print(torch.rand(1))")
    assert 4 not in included(answer)
    assert [each.text.partition(" random")[0] for each in answer.problems] == ["cell 5 draws"]


def test_loop_over_result_of_unknown_library_is_reported() -> None:
    answer = chosen(
        "import torch, books\nbatches = books.load()",
        "torch.manual_seed(0)",
        "for batch in batches: print(batch)",
        "print(torch.rand(1))",
    )
    assert [each.text.partition(", which")[0] for each in answer.problems] == [
        "cell 3 calls `iter(batches)`"
    ]
