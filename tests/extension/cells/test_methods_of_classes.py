"""Methods of the notebook's classes: names of their first parameter, and hooks of a class."""

from __future__ import annotations

import pytest

from benchpool_support.cells import chosen, included


@pytest.mark.parametrize("name", ["self", "s", "this", "_self", "agent"])
def test_method_changes_object_whatever_its_first_parameter_is_called(name: str) -> None:
    body = f"    def __init__({name}): {name}.n = 0\n    def up({name}): {name}.n += 1"
    answer = chosen(f"class Counter:\n{body}", "c = Counter()", "c.up()", "print(c.n)")
    assert included(answer) == [0, 1, 2, 3]


def test_static_method_has_no_object() -> None:
    tools = "class Tools:\n    @staticmethod\n    def fill(xs): xs.append(1)"
    answer = chosen(tools, "xs = []", "ys = []", "Tools.fill(xs)", "print(ys)")
    assert included(answer) == [2, 4]


def test_inner_parameter_of_the_same_name_is_another_object() -> None:
    body = "    def run(s, xs):\n        def add(s): s.append(1)\n        add(xs)"
    answer = chosen(f"class A:\n{body}", "a, xs = A(), []", "a.run(xs)", "print(xs)")
    assert included(answer) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (
            "class Meta(type):\n    def __init__(cls, *words): kept.append(cls)",
            "class A(metaclass=Meta): pass",
        ),
        (
            "class Base:\n    def __init_subclass__(cls): kept.append(cls)",
            "class A(Base): pass",
        ),
        (
            "class Field:\n    def __set_name__(self, owner, name): kept.append(name)",
            "class A:\n    x = Field()",
        ),
        ("", "class A:\n    kept.append(1)"),
    ],
    ids=["metaclass", "base class", "descriptor", "body"],
)
def test_definition_of_class_runs_its_hooks_and_body(given: str, made: str) -> None:
    answer = chosen("kept = []", given, made, "print(kept)")
    assert 2 in included(answer)
