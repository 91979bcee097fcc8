"""Parameters of notebooks: declarations in cells, and values that replace them. Pure."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.client.notebooks import JobCell, declared, recorded, with_values
from benchpool_scheduler.client.notebooks.parameter_types import read, written
from benchpool_scheduler.contract.parameters import WrittenValue
from benchpool_scheduler.errors import InvalidInput

TAGGED = JobCell(
    "p",
    2,
    "lr = 0.1  # step size\n"
    "epochs: int = 3\n"
    "name = 'a'\n"
    "deep = False  # type: bool whether it is deep\n"
    "limit: float | None = None\n"
    "sizes = [1, 2]\n"
    "path = f(name)\n"
    "a, b = 1, 2",
    tags=("parameters",),
)
OTHER = JobCell("o", 3, "%matplotlib inline\nseed = 7; SCALE = -1.5\nn = 0\nn += 1\nlr = 2")


def typed(**values: str) -> dict[str, object]:
    return {name: WrittenValue(text) for name, text in values.items()}


def test_tagged_cell_declares_names_types_defaults_and_help() -> None:
    found = [each for each in declared([TAGGED, OTHER]) if each.tagged]
    assert [(each.name, each.type, each.default, each.help, each.optional) for each in found] == [
        ("lr", "float", "0.1", "step size", False),
        ("epochs", "int", "3", "", False),
        ("name", "str", "'a'", "", False),
        ("deep", "bool", "False", "whether it is deep", False),
        ("limit", "float", "None", "", True),
        ("sizes", "list", "[1, 2]", "", False),
        ("path", "any", "f(name)", "", False),
    ]


def test_constant_assigned_once_is_parameter_without_tag() -> None:
    found = [each.name for each in declared([TAGGED, OTHER]) if not each.tagged]
    assert found == ["seed", "SCALE"], "n counts, lr is the tagged one"
    twice = [
        JobCell("a", 1, "x = 1"),
        JobCell("b", 2, "for x in y: pass"),
        JobCell("c", 3, "z = 3"),
    ]
    assert [each.name for each in declared(twice)] == ["z"]
    assert declared([JobCell("a", 1, "x = = 1"), JobCell("m", 2, "x = 1", "markdown")]) == ()


def test_values_follow_tagged_cell_and_replace_constants() -> None:
    old = JobCell("x", 3, "lr = 9", tags=("injected-parameters",))
    made = with_values([TAGGED, old, OTHER], typed(lr="0.2", name="b'c", seed="8"), "book.ipynb")
    assert [each.id for each in made.cells] == ["p", "injected-parameters", "o"]
    injected = made.cells[1]
    assert injected.source == '# Parameters\nlr = 0.2\nname = "b\'c"'
    assert (injected.tags, injected.number) == (("injected-parameters",), 2)
    assert made.cells[2].source.split("\n")[1] == "seed = 8; SCALE = -1.5"
    assert dict(made.values) == {
        **{"lr": 0.2, "epochs": 3, "name": "b'c", "deep": False, "limit": None},
        **{"sizes": [1, 2], "seed": 8},
    }
    assert with_values([TAGGED, OTHER], {}).cells == (TAGGED, OTHER)


@pytest.mark.parametrize(
    ("given_", "field", "message"),
    [
        ({"lrr": 1}, "lrr", r"^book.ipynb has no .* `lrr`: did you mean lr\? It has lr, epochs"),
        ({"nothing": 1}, "nothing", "`nothing`: it has lr, epochs, name, deep, limit, sizes, path"),
        (typed(lr="fast"), "lr", r"`lr` must be a number \(its default is 0.1\), not fast\."),
        (typed(epochs="2.5"), "epochs", r"`epochs` must be a whole number .*, not 2.5\."),
        ({"epochs": True}, "epochs", ", not True"),
        ({"name": 3}, "name", "`name` must be a text"),
        (typed(deep="maybe"), "deep", "`deep` must be true or false"),
        (typed(sizes="3"), "sizes", "`sizes` must be a list"),
        (typed(lr="None"), "lr", ", not None"),
        ({"path": object()}, "path", ", not "),
    ],
)
def test_wrong_name_or_type_is_rejected_with_field(
    given_: dict[str, object], field: str, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        with_values([TAGGED, OTHER], given_, "book.ipynb")
    assert refused.value.field == f"parameters.{field}"


def test_typed_text_is_parsed_by_parameter_type() -> None:
    values = typed(lr="1e-3", deep="true", limit="None", sizes="[3]", path="x/y", epochs="4")
    made = with_values([TAGGED], values).values
    assert made == {
        **{"lr": 0.001, "epochs": 4, "name": "a", "deep": True, "limit": None},
        **{"sizes": [3], "path": "x/y"},
    }


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(LITERALS)
def test_value_as_python_text_round_trips(value: object) -> None:
    again = eval(written(value), {"__builtins__": {"float": float}})  # noqa: S307
    assert repr(again) == repr(value)


@given(st.floats(allow_nan=False) | st.integers())
def test_number_is_read_as_written(value: float) -> None:
    again = read("x", WrittenValue(repr(value)), "float", optional=False, default="")
    assert again == float(value)


@given(LITERALS)
def test_recorded_values_are_plain(value: object) -> None:
    kept = recorded(value)
    for each in kept if isinstance(kept, list) else [kept]:
        assert each is None or type(each) in (bool, int, float, str)
        assert not isinstance(each, float) or math.isfinite(each)


@given(
    st.text(max_size=30),
    st.lists(st.sampled_from(["é = 1", "x = 'ü'; y = 2", "z = -3"]), unique=True),
)
def test_only_constant_is_replaced(comment: str, lines: list[str]) -> None:
    comment = "".join(sign for sign in comment if sign.isprintable())
    source = "\n".join([*lines, f"k = 1  # {comment}"])
    (made,) = with_values([JobCell("a", 1, source)], {"k": 22}).cells
    assert made.source == "\n".join([*lines, f"k = 22  # {comment}"])
