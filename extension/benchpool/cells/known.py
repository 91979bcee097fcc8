"""What is known of names that a notebook does not define: tables, and questions to them.

Unknown functions are taken to change what they are given. The tables name those that do not, so
that looking at data does not count as changing it. When in doubt, leave a name out of them.
"""

from __future__ import annotations

import builtins
import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROVIDED = frozenset(dir(builtins)) | {
    "__name__",
    "__builtins__",
    "__doc__",
    "__annotations__",
    "get_ipython",
    "display",
    "exit",
    "quit",
    "open",
    "In",
    "Out",
    "_ih",
    "_oh",
    "_dh",
    "_",
    "__",
    "___",
}
"""Names that a fresh kernel has."""

_EARLIER_OUTPUT = re.compile(r"^(_{1,3}|_\d+|_i+\d*|Out)$")

READING_FUNCTIONS = _words(
    """print len range enumerate zip sorted reversed min max sum abs all any repr str int float
    bool complex bytes list tuple dict set frozenset type isinstance issubclass hasattr getattr
    id hash callable format iter map filter round display vars dir help divmod pow ord chr hex
    bin slice super ascii tqdm trange pprint"""
)

READING_MODULES = _words(
    """matplotlib seaborn plotly bokeh altair math json statistics pprint pathlib time datetime
    logging tqdm IPython numpy pandas polars torch torchvision torchinfo sklearn scipy
    collections itertools functools re glob copy os sys shutil pickle joblib yaml csv string
    textwrap operator typing dataclasses tensorflow jax einops PIL cv2 psutil pynvml benchpool"""
)
"""Modules whose functions leave their arguments as they are, but for ``CHANGING``."""

CHANGING = frozenset(
    ["shuffle", "put", "place", "copyto", "fill_diagonal", "putmask", "setattr", "delattr"]
)

READING_METHODS = _words(
    """head tail describe info sample copy deepcopy items keys values get mean sum std var min max
    median count value_counts unique nunique corr astype reshape transpose numpy cpu detach item
    tolist to_list to_numpy plot hist scatter show savefig format split rsplit join strip lstrip
    rstrip startswith endswith lower upper title replace encode decode exists is_file is_dir
    read_text read_bytes parameters named_parameters state_dict children modules buffers summary
    predict predict_proba score groupby merge agg query isna isnull notna dropna fillna
    sort_values reset_index set_index drop rename assign to_csv to_parquet to_json to_dict
    to_frame to_string index find argmax argmin argsort norm dim size numel clone squeeze
    unsqueeze flatten ravel dot matmul any all round quantile pivot_table melt nlargest
    nsmallest isin between abs cumsum save save_pretrained with_suffix resolve joinpath
    relative_to iterdir rglob as_posix isoformat strftime total_seconds total elements
    most_common iterrows itertuples group groups"""
)

_AMBIENT_FUNCTIONS = _words(
    """seed manual_seed manual_seed_all seed_everything use filterwarnings simplefilter chdir
    putenv basicConfig login autolog use_deterministic_algorithms register_matplotlib_converters
    captureWarnings enable_eager_execution experimental_enable_numpy_behavior"""
)
_AMBIENT_PLACES = frozenset({"environ", "rcParams", "path", "options", "display"})
_AMBIENT_METHODS = frozenset({"append", "insert", "extend", "update", "setdefault", "pop", "clear"})


def is_earlier_output(name: str) -> bool:
    """Say whether a name stands for what an earlier cell printed or read (``_``, ``_12``)."""
    return _EARLIER_OUTPUT.match(name) is not None


def is_ambient(chain: tuple[str, ...]) -> bool:
    """Say whether calling ``a.b.c`` of a module changes how everything after it behaves.

    >>> is_ambient(("np", "random", "seed")), is_ambient(("sys", "path", "append"))
    (True, True)
    >>> is_ambient(("np", "mean"))
    False
    """
    name = chain[-1]
    if name in _AMBIENT_FUNCTIONS or name.startswith("set_"):
        return True
    return len(chain) > 2 and chain[-2] in _AMBIENT_PLACES and name in _AMBIENT_METHODS


def leaves_arguments(module: str | None, name: str) -> bool:
    """Say whether a function, of a module or built in, is known to change none of its arguments.

    A name in capitals is taken for a class: making an object keeps, but does not change.
    """
    if name in CHANGING or (name.endswith("_") and not name.startswith("_")):
        return False
    if module is not None and module.split(".")[0] in READING_MODULES:
        return True
    return (module is None and name in READING_FUNCTIONS) or name[:1].isupper()
