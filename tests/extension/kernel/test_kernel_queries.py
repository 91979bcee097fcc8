"""Questions to a kernel about names, their sharing and the executed cells, without side effects."""

from __future__ import annotations

import collections
import functools
import json
import os
import threading
import types
from collections.abc import Iterator
from typing import Any

import pytest

from benchpool.kernel import probe, question
from benchpool.kernel.answer import MAX_ANSWER, KernelAnswer, decode
from benchpool_support.own_kernels import own_kernel


def kernel_answer(**namespace: Any) -> KernelAnswer:
    return question.of_this_process(namespace, ["", "x = 1"], namespace)


def test_same_object_has_same_identity() -> None:
    xs: list[int] = []
    names = kernel_answer(xs=xs, ys=xs, zs=[]).names
    assert names["xs"].identity == names["ys"].identity != names["zs"].identity
    assert (names["xs"].shares, names["zs"].shares) == (["ys"], [])


class Own:
    def __init__(self, kept: object) -> None:
        self.kept = kept

    def method(self) -> object:
        return self.kept


class Slotted:
    __slots__ = ("empty", "kept")

    def __init__(self, kept: object) -> None:
        self.kept = kept


class OwnList(list[object]):
    pass


def closure(kept: object) -> Any:
    return lambda: kept


def with_default(kept: object) -> Any:
    def function(given: object = kept) -> object:
        return given

    return function


@pytest.mark.parametrize(
    "holder",
    [
        lambda kept: [1, kept],
        lambda kept: {"a": (1, {"b": kept})},
        lambda kept: (1, kept),
        Own,
        Slotted,
        lambda kept: OwnList([kept]),
        lambda kept: Own(kept).method,
        closure,
        with_default,
        lambda kept: functools.partial(print, kept),
        lambda kept: collections.deque([kept]),
        lambda kept: collections.defaultdict(list, {1: kept}),
        lambda kept: types.SimpleNamespace(kept=kept),
    ],
)
def test_nested_object_is_shared(holder: Any) -> None:
    xs = [1]
    names = kernel_answer(xs=xs, holder=holder(xs), apart=holder([1])).names
    assert names["xs"].shares == ["holder"]
    assert names["apart"].shares == []
    assert names["holder"].is_walked


def test_opaque_object_is_not_walked() -> None:
    xs = [1]
    names = kernel_answer(
        xs=xs, it=iter(xs), made=(each for each in xs), lock=threading.Lock()
    ).names
    assert not names["it"].is_walked
    assert not names["made"].is_walked
    assert names["lock"].is_walked


@pytest.mark.parametrize("value", [1, "a", None, 1.5, (1, ("a", b"b")), range(3), frozenset([1])])
def test_immutable_value_is_recognised(value: object) -> None:
    assert kernel_answer(x=value).names["x"].is_immutable


@pytest.mark.parametrize("value", [[], {}, ([],), Own(1), print, Own, bytearray()])
def test_mutable_value_is_recognised(value: object) -> None:
    assert not kernel_answer(x=value).names["x"].is_immutable


def test_answer_reports_length_and_bytes() -> None:
    facts = kernel_answer(xs=[b"x" * 10_000, b"y" * 10_000]).names["xs"]
    assert (facts.type, facts.length, facts.shape) == ("builtins.list", 2, None)
    assert 20_000 < facts.bytes < 21_000


def test_walk_stops_at_time_limit() -> None:
    text = probe.answer({"xs": [[each] for each in range(1000)]}, [""], ["xs"], seconds=0)
    assert not decode(text).names["xs"].is_walked


def test_large_list_is_walked_in_part() -> None:
    facts = kernel_answer(xs=[[each] for each in range(100_000)]).names["xs"]
    assert facts.length == 100_000
    assert not facts.is_walked


class Nosy:
    """Object that fails on any access."""

    def __getattribute__(self, name: str) -> object:
        raise AssertionError(name)

    def __len__(self) -> int:
        raise AssertionError

    def __repr__(self) -> str:
        raise AssertionError

    def __eq__(self, other: object) -> bool:
        raise AssertionError

    def __hash__(self) -> int:
        raise AssertionError

    def __sizeof__(self) -> int:
        raise AssertionError


def test_methods_of_user_classes_are_not_called() -> None:
    assert kernel_answer(x=Nosy(), xs=[Nosy()]).names["xs"].length == 1


def test_long_history_keeps_newest_texts() -> None:
    text = "x" * (probe.HISTORY_BYTES - 5)
    answer = decode(probe.answer({}, ["", "old", text, "new"], []))
    assert (answer.history, answer.first) == ([text, "new"], 2)
    assert decode(probe.answer({}, ["", "old"], [])).first == 1


def test_answer_is_bounded_and_rejects_unknown_keys() -> None:
    with pytest.raises(ValueError, match=f"at most {MAX_ANSWER}"):
        decode(" " * (MAX_ANSWER + 1))
    whole = {"names": {}, "history": [], "first": 1, "seconds": 0.1}
    assert decode(json.dumps(whole)).names == {}
    with pytest.raises(ValueError, match="more"):
        decode(json.dumps({**whole, "more": 1}))


def test_names_are_grouped_transitively() -> None:
    a: list[int] = []
    b: list[int] = []
    answer = kernel_answer(a=a, ab=[a, b], b=b, alone=[])
    assert answer.group_of("a") == {"a", "ab", "b"}
    assert answer.group_of("alone") == {"alone"}


# ------------------------------------------------------------------ with a real kernel


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with own_kernel(os.environ, tmp_path_factory.mktemp("kernel")) as client:
        yield client


STATE = (
    "sorted(name for name in globals() if not name.startswith('_')), list(In), dict(Out), "
    "get_ipython().execution_count, _, __, list(__import__('sys').modules)"
)


def evaluated(kernel: Any, expression: str) -> dict[str, Any]:
    """Return the reply to a silent request with this expression."""
    asked = kernel.execute(
        "", silent=True, store_history=False, user_expressions={question.KEY: expression}
    )
    while True:
        reply = kernel.get_shell_msg(timeout=120)
        if reply["parent_header"]["msg_id"] == asked:
            content: dict[str, Any] = reply["content"]
            return content


@pytest.mark.slow
def test_kernel_answers_without_side_effects(kernel: Any) -> None:
    for code in ("xs = [1]; ys = xs; n = 3", "%time len(xs)", "1/0", "xs"):
        kernel.execute_interactive(code, timeout=60, output_hook=lambda message: None)
    before = evaluated(kernel, STATE)["user_expressions"]
    answer = question.read(evaluated(kernel, question.expression(["xs", "ys", "n", "gone"])))
    assert evaluated(kernel, STATE)["user_expressions"] == before
    assert answer.names.keys() == {"xs", "ys", "n"}
    assert answer.names["xs"].shares == ["ys"]
    assert answer.history == ["xs = [1]; ys = xs; n = 3", "%time len(xs)", "1/0", "xs"]
    assert answer.first == 1


@pytest.mark.slow
def test_failed_question_reports_error(kernel: Any) -> None:
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        question.read(evaluated(kernel, "1/0"))
