"""Statements of a session that a call needs, and the text of the call."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import pytest

from benchpool.functions.call_text import CallWriter
from benchpool.functions.pieces import Senders, chosen
from benchpool.functions.remote_function import remote
from benchpool.functions.session import RanCell, sender_names
from benchpool_scheduler.errors import InvalidInput


def runs(cells: list[str], call: str, senders: Senders | None = None) -> str:
    """Return the code of a call's job, without the call itself."""
    ran = [RanCell(f"in-{at}", at, text) for at, text in enumerate(cells, 1)]
    found = chosen(ran, call, senders or Senders())
    return "\n".join(each.run for each in found.cells[:-1] if each.included)


def test_redefined_function_is_included_once() -> None:
    cells = ["def f(): return 1", "x = 2", "def f(): return x"]
    assert runs(cells, "f()") == "x = 2\ndef f(): return x"


def test_only_needed_statements_of_cell_are_included() -> None:
    cell = "%%time\nimport math; import os\nslow = math.pi\n\n# how fast\nrate = 3\nf(rate)"
    cells = ["def f(x): return x * rate", cell]
    assert runs(cells, "f(1)").split("\n") == [
        *["def f(x): return x * rate", "%%time", "import math; import os"],
        *["slow = math.pi", "", "# how fast", "rate = 3", "f(rate)"],
    ]
    assert runs([cells[0], cell.replace("%%time", "")], "f(1)").split("\n") == [
        "def f(x): return x * rate",
        *["", "", "", "", "# how fast", "rate = 3"],
    ]


@pytest.mark.parametrize(
    "sends",
    [
        "job = benchpool.submit(f, 1)",
        "jobs = [pool.submit(f, i) for i in range(3)]",
        "jobs = benchpool.map(f, [1, 2])",
        "job = g.submit(1)",
        "job = g.options(gpus=4).submit(1)",
        "job = send(f)",
        "with watch():\n    job = g.submit(1)",
        "if __name__ == '__main__':\n    job = g.submit(1)",
    ],
)
def test_sending_statements_are_excluded(sends: str) -> None:
    senders = Senders(frozenset({"benchpool", "pool"}), frozenset({"send"}), frozenset({"g"}))
    cells = ["import benchpool\nk = 2\nf = lambda x: k * x\ng = benchpool.remote(f)", sends]
    assert "submit" not in runs(cells, "g(1)", senders)
    assert "k = 2" in runs(cells, "g(1)", senders)


def test_name_set_by_sending_statement_is_rejected() -> None:
    cells = [
        RanCell("in-1", 1, "import benchpool\n\njob = benchpool.submit(print)"),
        RanCell("in-2", 2, "def f(): return job"),
    ]
    (problem,) = chosen(cells, "f()", Senders()).problems
    assert (problem.level, problem.cell, problem.line) == ("error", "in-1", 3)
    assert problem.text.startswith("`job` is set by a statement that sends jobs")


def test_statements_below_running_statement_are_excluded() -> None:
    cells = [RanCell("in-1", 1, "def f(): return k\nk = 1\nlaunch()\nk = 2", until=3)]
    assert chosen(cells, "f()", Senders()).cells[0].run == "def f(): return k\nk = 1"


def test_sending_names_are_read_from_session() -> None:
    import benchpool

    @remote
    def train() -> None: ...

    names = {"b": benchpool, "send": benchpool.submit, "train": train, "other": print}
    found = Senders.of(sender_names(names, (benchpool.submit, benchpool.map)))
    assert found == Senders(
        frozenset({"b", "benchpool"}), frozenset({"send"}), frozenset({"train"})
    )


# ---------------------------------------------------------------------- text of the call


class Model:
    """Object of a session."""

    def fit(self, steps: int) -> int:
        """Return the number of steps."""
        return steps


def write(function: Callable[..., Any], *args: object, **kwargs: object) -> str:
    """Return the text of a call in the session ``SESSION``."""
    call = CallWriter(SESSION, RUNNING).write(function, args, kwargs)
    return "; ".join([*[f"import {each}" for each in call.imports], call.text])


def plain(x: object = 1, *rest: object, **more: object) -> object:
    """Return the arguments."""
    return x, rest, more


async def waits(x: int) -> int:
    """Return the argument."""
    return x


def factory(k: int) -> Callable[[int], int]:
    """Return a function without a name in the session."""

    def inner(x: int) -> int:
        return k * x

    return inner


MODEL, FRAME, INNER = Model(), Model(), factory(3)
RUNNING = "benchpool.submit(lambda x: x + 1, 2)"
WRAPPED = remote(gpus=2)(factory)
SESSION: dict[str, object] = {
    **{"plain": plain, "model": MODEL, "_": FRAME, "frame": FRAME, "by_three": INNER},
    **{"waits": waits, "Model": Model, "wrapped": WRAPPED},
}


@pytest.mark.parametrize(
    ("function", "args", "text"),
    [
        (plain, (1, "a'b", None, True, b"x"), "plain(1, \"a'b\", None, True, b'x')"),
        (plain, (0.1, math.inf), 'plain(0.1, float("inf"))'),
        (plain, ([1, (2,)], {"a": {3}}, set()), "plain([1, (2,)], {'a': {3}}, set())"),
        (plain, (FRAME, [MODEL, plain]), "plain(frame, [model, plain])"),
        (MODEL.fit, (3,), "model.fit(3)"),
        (Model.fit, (MODEL, 3), "Model.fit(model, 3)"),
        (INNER, (2,), "by_three(2)"),
        (waits, (2,), "await waits(2)"),
        (functools.partial(plain, 1), (2,), "plain(1, 2)"),
        (factory, (2,), "wrapped(2)"),
        (WRAPPED.options(gpus=4), (2,), "wrapped(2)"),
        (math.sqrt, (2,), "import math; math.sqrt(2)"),
        (print, ("a",), "print('a')"),
        (eval("lambda x: x + 1"), (2,), "(lambda x: x + 1)(2)"),  # noqa: S307
    ],
)
def test_call_is_written_with_session_names(
    function: Callable[..., Any], args: tuple[object, ...], text: str
) -> None:
    assert write(function, *args) == text


def test_keyword_arguments_are_written_and_named_by_parameter() -> None:
    assert write(plain, 2, lr=0.1, **{"a b": 3}) == "plain(2, lr=0.1, **{'a b': 3})"
    assert CallWriter(SESSION, "").write(plain, (), {"lr": 0.1}).given == {"x": 1, "lr": 0.1}


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (factory(2), (1,), "inner has no name in this session, so a job cannot call it"),
        (MODEL.fit, (), r"fit\(\): missing a required argument: 'steps'\."),
        (plain, (Model(),), "Argument 1 is a Model that has no name in this session"),
        (plain, (1, ["x" * (2 << 20)]), "The arguments of plain have 2 MiB as text, the limit is"),
        (eval("lambda x: x + 2, lambda: 3")[1], (), "The lambda of line 1 cannot be sent"),  # noqa: S307
    ],
)
def test_unwritable_argument_is_rejected_with_remedy(
    function: Callable[..., Any], args: tuple[object, ...], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        write(function, *args)
