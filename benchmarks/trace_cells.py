"""Find by runs which cells each selection of the corpus needs, and store it beside the corpus.

``pip install -r tests/extension/cells/corpus/requirements.txt``, then ``python
benchmarks/trace_cells.py [WORD…]``: only texts whose name has one of the words.

Every run is a fork with a new interactive shell in a folder of its own. From the last cell above
the selection to the first, each is left out in turn. If a cell then fails, or the selected one
prints, returns, binds or changes something else, the omitted cell is needed. In notebooks each cell
begins with random numbers of its own, so that a needed cell is one whose results are used. In
idioms the state of random numbers counts too.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterable
from json import dumps, loads
from pathlib import Path
from typing import Any

import checkout  # noqa: F401 (makes what tests use importable)

from benchpool.cells import NotebookCell, names_of
from benchpool.kernel import probe
from benchpool_support.cell_corpus import ASKED, CORPUS, TRACED, Text, digest_of, texts

os.environ.update(KERAS_BACKEND="torch", MPLBACKEND="agg", TQDM_DISABLE="1", OMP_NUM_THREADS="1")
sys.path.insert(0, str(CORPUS / "stand_ins"))


def main(words: list[str]) -> int:
    stored = json.loads(TRACED.read_text("utf-8")) if TRACED.exists() else {}
    known = {each.name: each for each in texts()}
    stored = {name: value for name, value in stored.items() if name in known}
    _load()
    wrong = 0
    for text in known.values():
        fresh = stored.get(text.name, {}).get("digest") == digest_of(text)
        asked = any(word in text.name for word in words)
        if (words and not asked) or (fresh and not asked):
            continue
        began = time.perf_counter()
        try:
            stored[text.name] = traced(text)
        except RuntimeError as bad:
            wrong += 1
            print(f"{text.name}: {bad}")
            continue
        print(
            f"{text.name}: {stored[text.name]['needs']} {time.perf_counter() - began:.1f} s",
            flush=True,
        )
        _write(stored)
    _write(stored)
    _ask(known, words)
    return int(wrong > 0)


def _ask(known: dict[str, Text], words: list[str]) -> None:
    stored = json.loads(ASKED.read_text("utf-8")) if ASKED.exists() else {}
    stored = {name: value for name, value in stored.items() if name in known}
    for name, text in known.items():
        fresh = stored.get(name, {}).get("digest") == digest_of(text)
        if any(word in name for word in words) or (not words and not fresh):
            stored[name] = asked(text)
    _write(stored, ASKED)


def _write(stored: dict[str, Any], path: Path = TRACED) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps(stored[name])}" for name in sorted(stored)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def traced(text: Text) -> dict[str, Any]:
    """Return the cells that each selected cell of a text needs, and the seconds of each cell."""
    seconds: list[float] = []
    needs = {}
    for selected in text.selected:
        kept = list(range(selected))
        whole = _ran(text, [*kept, selected])
        if whole.failed is not None:
            raise RuntimeError(f"cell {whole.failed[0]} fails: {whole.failed[1]}")
        if not _is_same(whole, _ran(text, [*kept, selected]), text.cells[selected]):
            raise RuntimeError(f"cell {selected} gives something else each time")
        seconds = max(seconds, whole.seconds, key=len)
        for number in reversed(range(selected)):
            without = [each for each in kept if each != number]
            if _is_same(whole, _ran(text, [*without, selected]), text.cells[selected]):
                kept = without
        needs[str(selected)] = kept
    return {
        "digest": digest_of(text),
        "needs": needs,
        "seconds": [float(f"{each:.4f}") for each in seconds],
    }


def asked(text: Text) -> dict[str, Any]:
    """Return the kernel's answer about the names after all cells (in idioms: but the last)."""
    ran = range(len(text.cells) - (not text.is_notebook))
    return {"digest": digest_of(text), "names": _forked(lambda: _names(text, list(ran)))}


def _names(text: Text, numbers: list[int]) -> dict[str, Any]:
    shell = _shell()
    for number in numbers:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            shell.run_cell(text.cells[number], store_history=True)
    cells = [NotebookCell(str(number), source) for number, source in enumerate(text.cells)]
    answer = loads(probe.answer(shell.user_ns, [""], sorted(names_of(cells)), seconds=5))
    return {
        name: [each["type"], each["is_immutable"], each["is_walked"], each["shares"]]
        for name, each in answer["names"].items()
    }


def _is_same(whole: _Ran, part: _Ran, source: str) -> bool:
    """Return whether a selected cell had the same output, result, bindings and changes.

    A change counts if the part has the name, or if the cell contains it.
    """
    if part.seen is None or whole.seen is None or part.seen[:2] != whole.seen[:2]:
        return False
    (before, after), (_, other) = whole.seen[2], part.seen[2]
    mentioned = set(re.findall(r"\w+", source))
    changed = {name for name, value in after.items() if before.get(name) != value}
    return all(
        other.get(name) == after[name] for name in changed if name in other or name in mentioned
    )


class _Ran:
    def __init__(self, answer: dict[str, Any]) -> None:
        self.failed: tuple[int, str] | None = answer["failed"]
        self.seconds: list[float] = answer["seconds"]
        self.seen = answer["seen"] if self.failed is None else None


def _ran(text: Text, numbers: list[int]) -> _Ran:
    return _Ran(_forked(lambda: _run(text, numbers)))


def _forked(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the result of ``work`` in a fork with a temporary folder."""
    reading, writing = os.pipe()
    with tempfile.TemporaryDirectory() as folder:
        child = os.fork()
        if child == 0:
            try:
                os.close(reading)
                os.chdir(folder)
                tempfile.tempdir = folder
                with os.fdopen(writing, "w") as pipe:
                    pipe.write(dumps(work()))
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)  # skip the parent's exit handlers
        os.close(writing)
        with os.fdopen(reading) as pipe:
            text = pipe.read()
        os.waitpid(child, 0)
    if not text:
        raise RuntimeError("the run ended without an answer")
    answer: dict[str, Any] = json.loads(text)
    return answer


def _run(text: Text, numbers: list[int]) -> dict[str, Any]:
    shell = _shell()
    seconds: list[float] = []
    for number in numbers:
        if text.is_notebook:
            _seed(number)
        last = number == numbers[-1]
        before = _prints(shell.user_ns) if last else {}
        out = io.StringIO()
        began = time.perf_counter()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            done = shell.run_cell(text.cells[number], store_history=True)
        seconds.append(time.perf_counter() - began)
        if not done.success:
            error = done.error_before_exec or done.error_in_exec
            return {"failed": (number, repr(error)), "seconds": seconds, "seen": None}
    printed = re.sub(r" at 0x[0-9a-f]+", "", out.getvalue())
    seen = (printed, fingerprint(done.result), (before, _prints(shell.user_ns)))
    return {"failed": None, "seconds": seconds, "seen": seen}


def _prints(names: dict[str, Any]) -> dict[str, str]:
    hidden = {"In", "Out", "get_ipython", "exit", "quit", "open"}
    return {
        name: fingerprint(value)
        for name, value in names.items()
        if not name.startswith("_") and name not in hidden
    }


def _load() -> None:
    """Import the texts' imports once, so that no fork and no cell's seconds include them."""
    import warnings

    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    words = {line.strip() for text in texts() for cell in text.cells for line in cell.split("\n")}
    for line in sorted(words):
        if line.startswith(("import ", "from ")) and not any(word in line for word in _OWN):
            with contextlib.suppress(ImportError):  # some texts create the modules that they import
                exec(line, {})  # noqa: S102 (our own texts)


_OWN = ("booklib", "__future__", "experimental", "Halving", ";")


def _shell() -> Any:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config)
    shell.enable_gui = lambda gui=None: None
    shell.displayhook.write_output_prompt = lambda: None  # its number would reveal omitted cells
    return shell


def _seed(number: int) -> None:
    import numpy
    import torch

    random.seed(number)
    numpy.random.seed(number)
    torch.manual_seed(number)
    import keras

    keras.utils.set_random_seed(number)


def fingerprint(value: Any) -> str:
    """Return a text that differs where two values would behave differently."""
    seen: dict[int, int] = {}
    digest = hashlib.sha1(usedforsecurity=False)
    for part in _parts(value, seen, 0):
        digest.update(part.encode("utf-8", "replace"))
    return digest.hexdigest()


def _parts(value: Any, seen: dict[int, int], depth: int) -> Iterable[str]:
    import numpy
    import pandas
    import torch

    kind = type(value).__qualname__
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        yield f"{kind}:{value!r};"
        return
    if isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        yield f"{kind}:{value.__name__};"
        return
    if id(value) in seen or depth > 12:
        yield f"again:{seen.get(id(value))};"
        return
    seen[id(value)] = len(seen)
    yield f"{kind}("
    if isinstance(value, numpy.ndarray):
        if value.dtype == object:
            for each in value.ravel():
                yield from _parts(each, seen, depth + 1)
        else:
            yield f"{value.dtype}{value.shape}" + numpy.ascontiguousarray(value).tobytes().hex()
    elif isinstance(value, torch.nn.parameter.UninitializedTensorMixin):
        yield "no values yet"
    elif isinstance(value, torch.Tensor):
        yield f"{value.requires_grad}{value.dtype}{tuple(value.shape)}{value.tolist()}"
        if value.is_leaf and value.grad is not None:
            yield f"grad{value.grad.tolist()}"
    elif type(value).__module__.startswith("keras") or hasattr(value, "get_weights"):
        weights = value.get_weights() if hasattr(value, "get_weights") else None
        yield from _parts(getattr(value, "history", weights), seen, depth)
    elif isinstance(value, torch.nn.Module):
        yield f"{value!r}{value.training}"
        for name, each in {**value.state_dict(keep_vars=True)}.items():
            yield name
            yield from _parts(each, seen, depth + 1)
    elif isinstance(value, pandas.DataFrame | pandas.Series | pandas.Index):
        yield value.to_string() if not isinstance(value, pandas.Index) else repr(value.tolist())
    elif isinstance(value, dict):
        for key, each in value.items():
            if isinstance(key, str) and key.rstrip("_").endswith("_time"):
                continue  # duration of a fit
            yield from _parts(key, seen, depth + 1)
            yield from _parts(each, seen, depth + 1)
    elif isinstance(value, set | frozenset):
        yield repr(sorted(map(repr, value)))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _parts(each, seen, depth + 1)
    elif isinstance(value, types.FunctionType):
        yield value.__qualname__
    elif type(value).__module__.startswith(("matplotlib", "IPython")):
        yield kind
    elif hasattr(value, "__dict__"):
        yield from _parts(vars(value), seen, depth + 1)
    yield ")"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
