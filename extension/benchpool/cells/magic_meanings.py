"""Effects of IPython's magics, and those of known extensions, on names of the notebook."""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchpool.cells.substitution import expressions_in, is_expression, names_in, single_names


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


PYTHON_BODIES = words(
    """time timeit capture prun memit mprun lprun snakeviz debug pyinstrument scalene
    memray_flamegraph wandb heat"""
)
"""Cell magics whose body is Python in the notebook's namespace."""

NOT_EXPANDED = frozenset(["debug", "prun", "time", "timeit"])
"""Magics whose line IPython passes on unexpanded, since it is Python."""

SHELL_BODIES = frozenset(["!", "sx", "system"])
"""Cell magics whose body is expanded like a shell line."""

_CODE_LINES = words(
    """time timeit prun debug memit mprun lprun snakeviz pyinstrument scalene heat"""
)
_TAKES_VALUE = {
    "timeit": "nrpv",
    "prun": "DlsT",
    "memit": "rti",
    "mprun": "fT",
    "lprun": "fmDTsu",
    "snakeviz": "f",
    "debug": "b",
}
"""One-letter options with a value, by magic; Python follows the options."""

_PASSING = frozenset(["R", "octave", "matlab", "julia", "Rdevice"])
_NAMED = words("""pinfo pinfo2 pdef pdoc psource pfile page edit ed pycat Rpush xdel""")
_OWN = words(
    """alias alias_magic autoawait autocall automagic bookmark cat cd code_wrap colors conda config
    cp dhist dirs doctest_mode env gui hist history killbgscripts ldir lf lk ll load load_ext
    loadpy logoff logon logstart logstate logstop ls lsmagic lx macro magic mamba matplotlib
    micromamba mkdir mv notebook pastebin pdb pip popd pprint precision psearch pushd pwd pylab
    quickref recall rehashx reload_ext rep rerun reset reset_selective rm rmdir run save sc set_env
    store sx system tb unalias unload_ext uv who who_ls whos xmode HTML SVG bash file html
    javascript js latex markdown perl pypy python python2 python3 ruby script sh svg writefile !
    cython zsh cmd powershell autoreload aimport tensorboard train
    serve"""
)
LINE_MAGICS = _OWN | _NAMED | _CODE_LINES
"""Known line magics. IPython accepts these without ``%`` too if they are alone in a cell."""

_WORD = r"[^\W\d]\w*"
_OUTPUTS = re.compile(rf"(?:^|\s)--(?:out|err|proc)[=\s]+({_WORD})")
_INPUT_OPTION = re.compile(r"(?:^|\s)(?:-i|--input)[=\s]*([\w.,]+)")
_OUTPUT_OPTION = re.compile(r"(?:^|\s)(?:-o|--output)[=\s]*([\w,]+)")
_NAME = re.compile(rf"(?<![\w./$-]){_WORD}(?:\.{_WORD})*(?![\w/(-])")
_SAVED = re.compile(rf"^\s*({_WORD})\s*<<")
_TABLES = re.compile(rf"\b(?:from|join|into|table|update)\s+({_WORD})", re.IGNORECASE)
_BOUND = re.compile(rf"(?<![:\w]):({_WORD})")
_JINJA = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_COMPILED = re.compile(
    r"^(?:def\s+|class\s+|cdef\s+class\s+|cpdef\s+(?:[\w.\[\]]+\s+)*?)"
    rf"({_WORD})\s*(?=[(:])|^({_WORD})\s*=(?!=)",
    re.MULTILINE,
)
_IMPORTED = re.compile(r"^(?:import|from)\s[^\n]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MagicMeaning:
    """Names and code that a call of a magic uses and defines; strings are Python.

    Attributes:
        perhaps: Expressions that it evaluates if their names are defined.
        reads: Names that it surely reads.
        code: Statements that it runs in the notebook's namespace.
        binds: Names that it defines.
        put_in: Names in the expressions that IPython substitutes.
        alone: Those of ``put_in`` that stand alone in braces.
    """

    perhaps: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    code: str = ""
    binds: tuple[str, ...] = ()
    put_in: frozenset[str] = frozenset()
    alone: frozenset[str] = frozenset()


def of_shell(text: str) -> MagicMeaning:
    """Return what a shell line uses (``!cmd {x} $y``)."""
    found = expressions_in(text)
    return MagicMeaning(tuple(found), put_in=names_in(found), alone=single_names(text))


def of_magic(name: str, line: str, body: str | None = None) -> MagicMeaning:
    """Return what ``%name line``, or ``%%name line`` with a body, uses and defines.

    The caller handles the body of a cell magic in ``PYTHON_BODIES``.

    >>> of_magic("timeit", "-n1 -r 3 f(x)").code, of_magic("bash", "-s $x --out got").binds
    ('f(x)', ('got',))
    >>> of_magic("R", "-i df,k -o fit", "fit <- lm(y ~ x, df)").reads
    ('df', 'k')
    """
    expanded = [] if name in NOT_EXPANDED else [line]
    if name in SHELL_BODIES | {"sql"} and body is not None:
        expanded.append(body)
    put_in = [each for text in expanded for each in expressions_in(text)]
    perhaps = [*put_in, *filter(is_expression, _named(name, line, body))]
    alone = frozenset[str]().union(*map(single_names, expanded))
    return MagicMeaning(
        tuple(dict.fromkeys(perhaps)),
        _read(name, line),
        _code(name, line, body),
        _bound(name, line, body),
        names_in(put_in),
        alone,
    )


def _named(name: str, line: str, body: str | None) -> list[str]:
    """Return the names that a magic itself looks up if they are defined."""
    if name == "sql":
        texts = [line, body or ""]
        return [each for text in texts for find in (_TABLES, _BOUND, _JINJA)
                for each in find.findall(text)] + _NAME.findall(line)  # fmt: skip
    if name == "store":
        return [] if _options(line) else _NAME.findall(line.partition(">")[0])
    known = name in _OWN | _CODE_LINES | _PASSING | PYTHON_BODIES
    if known and name not in _NAMED:
        return []
    registered = [] if known else [name]  # the function that a cell registered as a magic
    return [*registered, *_NAME.findall(line)]


def _read(name: str, line: str) -> tuple[str, ...]:
    if name in _PASSING:
        return _listed(_INPUT_OPTION, line)
    if name in {"mprun", "lprun"}:
        return tuple(re.findall(r"(?:^|\s)-f\s+([\w.]+)", line))
    return ()


def _code(name: str, line: str, body: str | None) -> str:
    if name in _CODE_LINES:
        return _after_options(name, line)
    if name == "xdel":
        return "\n".join(f"del {each}" for each in _NAME.findall(line))
    known = name in _OWN | _PASSING | PYTHON_BODIES | {"sql", "bigquery"}
    return "" if known or body is None else body


def _bound(name: str, line: str, body: str | None) -> tuple[str, ...]:
    plain = [word for word in line.split() if word.isidentifier()]
    found = list(_listed(_OUTPUT_OPTION, line)) if name in _PASSING else _OUTPUTS.findall(line)
    if name == "macro" or (name in {"capture", "bigquery"} and body is not None):
        found += plain[:1]
    if name == "timeit":
        found += re.findall(rf"(?:^|\s)-v\s*({_WORD})", line)
    if name == "store" and "r" in _options(line):
        found += plain
    if name in {"Rpull", "Rget"}:
        found += plain
    if name == "sc":
        found += re.findall(rf"(?:^|\s)({_WORD})\s*=", line)[:1]
    if name == "sql":
        found += _SAVED.findall(line)
    if name == "cython" and body is not None:
        found += _compiled(body)
    return tuple(dict.fromkeys(found))


def _compiled(body: str) -> list[str]:
    """Return the names that a Cython body defines: they are imported into the notebook."""
    names = [one or other for one, other in _COMPILED.findall(body)]
    for each in _IMPORTED.findall(body):
        last = re.split(r"\bimport\b", each)[-1]
        names += [part.split()[-1].split(".")[0] for part in last.split(",") if part.split()]
    return [each for each in names if each.isidentifier() and not each.startswith("_")]


def _listed(option: re.Pattern[str], line: str) -> tuple[str, ...]:
    return tuple(
        each for found in option.findall(line) for each in found.split(",") if each.isidentifier()
    )


def _options(line: str) -> str:
    return "".join(word[1:] for word in line.split() if re.fullmatch(r"-[a-z]+", word))


def _after_options(name: str, line: str) -> str:
    """Return the Python that follows the options of a magic."""
    valued = _TAKES_VALUE.get(name, "")
    rest = line.strip()
    while found := re.match(r"(--[a-z][\w-]*(?:=\S+)?|-[A-Za-z]\S*)(?:\s+|$)", rest):
        option, rest = found.group(1), rest[found.end() :]
        is_open = not option.startswith("--") and option[-1] in valued and _is_last(option, valued)
        if is_open:
            rest = re.sub(r"^\S+\s*", "", rest)
    return rest


def _is_last(option: str, valued: str) -> bool:
    """Return whether an option's value is the next word: ``-n``, ``-qn``, but not ``-n1``."""
    return not any(letter in valued for letter in option[1:-1])
