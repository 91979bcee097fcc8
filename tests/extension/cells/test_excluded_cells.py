"""Cells that seem to change a needed name and do not are excluded."""

from __future__ import annotations

import pytest

from benchpool_support.cells import chosen, included

NET = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n" + (
    "        self.encoder = nn.Linear(2, 2)\n    def forward(self, x):\n        return x\n"
)
TORCH = "import torch\nfrom torch import nn\n"
TRAINING = "loss = {net}(x).sum()\nloss.backward()"
MADE = "{net} = Net()\nx = torch.zeros(2)"


@pytest.mark.parametrize(
    ("before", "between", "selected"),
    [
        pytest.param(
            [TORCH + NET, MADE.format(net="a"), MADE.format(net="b")],
            TRAINING.format(net="a"),
            TRAINING.format(net="b"),
            id="the loss of another training",
        ),
        pytest.param(
            [TORCH, "SEED = 3\nmodel = lambda x: x"],
            "other = nn.Linear(SEED, 2)\nother.train()",
            "print(SEED)",
            id="a number that a model is made with",
        ),
        pytest.param(
            [TORCH, "config = {'lr': 0.1, 'width': 4}"],
            "net = nn.Linear(config['width'], 2)\nnet.train()",
            "print(config)",
            id="what is taken out of a configuration",
        ),
        pytest.param(
            [TORCH, "class Config:\n    width: int = 3\nconfig = Config()"],
            "net = nn.Linear(config.width, 2)\nnet(config.width).sum().backward()",
            "print(config.width)",
            id="an object of settings alone",
        ),
        pytest.param(
            [
                TORCH,
                "def run(net, x):\n    with torch.set_grad_enabled(True):\n        return net(x)",
            ],
            "run(len, [])",
            "print(torch.ones(1))",
            id="a setting that ends with its with, in a function",
        ),
        pytest.param(
            ["import warnings, numpy as np"],
            "with warnings.catch_warnings():\n    warnings.simplefilter('ignore')\n    np.log(0)",
            "print(np.ones(1))",
            id="a setting inside a context that puts it back",
        ),
        pytest.param(
            [TORCH + NET, "net = Net()\nX = torch.zeros(2)"],
            "codes = net.encoder(X)",
            "print(X)",
            id="a module that an object keeps is called with it",
        ),
    ],
)
def test_cell_without_needed_changes_is_excluded(
    before: list[str], between: str, selected: str
) -> None:
    assert len(before) not in included(chosen(*before, between, selected))


def test_loop_over_numbers_needs_no_dataset_class() -> None:
    data = "class Data:\n    def __init__(self):\n        self.n = 0\n" + (
        "    def __getitem__(self, i):\n        self.n += 1\n        return i\n"
    )
    assert included(chosen(data, "for i in range(3):\n    print(i)", "print([*range(3)])")) == [2]


def test_name_bound_in_cell_needs_no_earlier_changes() -> None:
    cells = [
        "env = [1]\ndef inner():\n    return env\ndef outer():\n    return inner()",
        "env.append(2)",
        "env = [3]\nprint(outer())",
    ]
    assert included(chosen(*cells)) == [0, 2]


def test_list_append_needs_no_earlier_appends() -> None:
    cells = [
        "results = []\nX, y = [[1], [2]], [1, 2]\nfrom sklearn.linear_model import Ridge",
        "first = Ridge().fit(X, y)\nresults.append(first.score(X, y))",
        "second = Ridge().fit(X, y)\nresults.append(second.score(X, y))",
        "print(second.coef_)",
    ]
    assert included(chosen(*cells)) == [0, 2, 3]
    shown = [*cells[:3], "print(results)"]
    assert included(chosen(*shown)) == [0, 1, 2, 3]


def test_container_receiving_object_may_change() -> None:
    cells = ["settings = {'n': 1}", "settings.update(seen=[])", "settings['seen'].append(2)"]
    assert included(chosen(*cells, "print(settings)")) == [0, 1, 2, 3]
