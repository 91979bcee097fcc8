"""A call with an unused result is included, since it was made for a side effect."""

from __future__ import annotations

import pytest

from benchpool_support.cells import chosen, included


@pytest.mark.parametrize(
    ("before", "between", "selected"),
    [
        pytest.param(
            "import gzip\nbox = []",
            "gzip.frobnicate(box)\nn = 1",
            "print(box)",
            id="a function of a known library",
        ),
        pytest.param(
            "tree = load()", "tree.normalize()\nn = 1", "print(tree)", id="a method that reads"
        ),
        pytest.param(
            "import struct\nbuffer = bytearray(4)",
            "struct.pack_into('<I', buffer, 0, 7)",
            "print(buffer)",
            id="one that ends its cell, by a word in its name",
        ),
        pytest.param(
            "import socket", "socket.frobnicate(3)\nn = 1", "print(1)", id="a setting of a library"
        ),
        pytest.param("x = 1", "import plain_style", "print(x)", id="an import that nobody uses"),
    ],
)
def test_call_with_unused_result_is_included(before: str, between: str, selected: str) -> None:
    given = "def load():\n    return make()"
    assert 2 in included(chosen(given, before, between, selected))


@pytest.mark.parametrize(
    ("before", "between"),
    [
        ("import pprint\nbox = []", "pprint.pprint(box)\nn = 1"),
        ("import numpy as np\nbox = []", "np.log(2)\nn = 1"),
        ("box = load()", "box.head()"),
        ("import shutil\nbox = []", "shutil.rmtree('old')\nn = 1"),
        ("import plain_style\nbox = []", "plain_style.version()"),
    ],
)
def test_call_without_lasting_effect_is_excluded(before: str, between: str) -> None:
    given = "def load():\n    return make()"
    assert 2 not in included(chosen(given, before, between, "print(box)"))


@pytest.mark.parametrize(
    "call",
    ["boot()", "boot('x')", "boot(SIZE)", "_ = boot()", "x = setup_device()", "setupLogging(box)"],
)
def test_unknown_function_that_may_set_something_is_included(call: str) -> None:
    given = "from lab import boot, setup_device, setupLogging\nSIZE = 3\nbox = []"
    answer = chosen(given, call, "print(1)")
    assert included(answer) == [0, 1, 2]


@pytest.mark.parametrize("call", ["get_version()", "x = boot()", "boot(box)", "tokenize('a b')"])
def test_unknown_function_that_answers_is_excluded(call: str) -> None:
    given = "from lab import boot, get_version, tokenize\nbox = []"
    assert 1 not in included(chosen(given, call, "print(1)"))


def test_reason_of_unknown_function_states_what_it_may_do() -> None:
    answer = chosen("from lab import boot", "boot()", "print(1)")
    assert answer.cells[1].why == "calls `boot`, which may set something for later cells"
