"""Facts about library functions, each taken from the documentation of the library."""

from __future__ import annotations

import pytest

from benchpool.cells import facts, setting_facts
from benchpool_support.cells import chosen, included

FUNCTIONS: dict[str, tuple[tuple[int | str, ...] | None, str]] = {
    "numpy.mean": ((), "new"),
    "numpy.asarray": ((), "shares"),
    "numpy.add.at": ((0,), "new"),
    "numpy.copyto": ((0,), "new"),
    "numpy.random.shuffle": ((0,), "new"),
    "pandas.read_csv": ((), "new"),
    "torch.from_numpy": ((), "shares"),
    "torch.nn.init.xavier_uniform_": ((0,), "shares"),
    "torch.nn.utils.vector_to_parameters": ((1,), "shares"),
    "torch.nn.utils.parameters_to_vector": ((), "shares"),
    "torch.nn.utils.prune.l1_unstructured": ((0,), "shares"),
    "torch.optim.Adam": ((), "keeps"),
    "torch.utils.data.DataLoader": ((), "quietly"),
    "sklearn.pipeline.make_pipeline": (("ax",), "keeps"),
    "sklearn.model_selection.GridSearchCV": (("ax",), "quietly"),
    "sklearn.ensemble.VotingClassifier": (("ax",), "quietly"),
    "sklearn.base.clone": (("ax",), "new"),
    "seaborn.lineplot": (("ax",), "new"),
    "heapq.heappush": ((0,), "new"),
    "json.dump": ((1,), "new"),
    "copy.deepcopy": ((), "new"),
    "copy.copy": ((), "shares"),
    "mine.Trainer": ((), "keeps"),
    "mine.mix": (None, "unknown"),
}


@pytest.mark.parametrize("path", FUNCTIONS)
def test_function_fact_states_changes_and_result(path: str) -> None:
    fact = facts.function(path)
    assert (fact.changes, fact.result) == FUNCTIONS[path]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("numpy.zeros", "data"),
        ("pandas.DataFrame", "data"),
        ("numpy.random.default_rng", "generator"),
        ("torch.utils.data.DataLoader", "loader"),
        ("torch.nn.Linear", "module"),
        ("torch.nn.MSELoss", "pure"),
        ("keras.Sequential", "layer"),
        ("matplotlib.pyplot.subplots", "axes"),
        ("csv.reader", "iterator"),
        ("mine.load", None),
    ],
)
def test_function_result_has_kind(path: str, kind: str | None) -> None:
    assert facts.function(path).kind == kind


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        *(("fit", "own"), ("load_state_dict", "own"), ("step", "own")),
        *(("predict", "reading"), ("groupby", "reading"), ("head", "reading")),
        *(("reshape", "views"), ("parameters", "views"), ("items", "views")),
        *(("append", "keeping"), ("pop", "taking"), ("to", "alone"), ("anything", "unknown")),
    ],
)
def test_method_has_rule(name: str, rule: str) -> None:
    assert facts.method(name) == rule


def test_seeds_and_draws_name_generator() -> None:
    assert facts.function("torch.manual_seed").seeds == {"torch"}
    assert facts.function("numpy.random.rand").draws == {"numpy"}
    assert facts.function("torch.nn.Linear").draws_when_made == {"torch"}
    assert facts.function("numpy.mean").draws == set()


@pytest.mark.parametrize(
    "chain",
    [
        *(("np", "seterr"), ("sys", "setrecursionlimit"), ("tqdm", "pandas")),
        *(("sys", "path", "insert"), ("plt", "style", "use"), ("sns", "set_theme")),
    ],
)
def test_setting_is_recognised(chain: tuple[str, ...]) -> None:
    assert setting_facts.is_setting(chain)


@pytest.mark.parametrize(
    "path", ["polars.Config", "polars.Config.set_tbl_rows", "importlib.reload", "numpy.seterr"]
)
def test_global_call_counts_as_setting(path: str) -> None:
    assert setting_facts.is_setting(tuple(path.split(".")))


@pytest.mark.parametrize(
    ("path", "generator"),
    [
        ("torch.nn.functional.dropout", "torch"),
        ("scipy.stats.norm.rvs", "numpy"),
        ("sklearn.datasets.make_blobs", "numpy"),
    ],
)
def test_function_draws_random_numbers(path: str, generator: str) -> None:
    assert facts.function(path).draws == {generator}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("torch.nn.Dropout", "drops"),
        ("torch.optim.AdamW", "optimizer"),
        ("torchmetrics.Accuracy", "remembers"),
        ("logging.getLogger", "shared"),
        ("operator.attrgetter", None),
    ],
)
def test_special_function_kind_is_known(path: str, kind: str | None) -> None:
    assert facts.function(path).kind == kind


def test_search_trains_copies_of_its_estimator() -> None:
    given = "from sklearn.model_selection import GridSearchCV\nmodel, X = make(), load()"
    search = "search = GridSearchCV(model, {})"
    assert included(chosen(given, search, "search.fit(X)", "print(model)")) == [0, 3]


@pytest.mark.parametrize("change", ["search.set_params(a=1)", "search.estimator.fit(X)"])
def test_change_through_search_is_change_of_its_estimator(change: str) -> None:
    given = "from sklearn.model_selection import GridSearchCV\nmodel, X = make(), load()"
    search = "search = GridSearchCV(model, {})"
    assert included(chosen(given, search, change, "print(model)")) == [0, 1, 2, 3]
