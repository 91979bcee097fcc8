"""Trainings with Hugging Face's Trainer, Lightning or Keras: their lines with a callback added."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchpool.cells import expressions
from benchpool.cells.def_use import Chain

_HUGGINGFACE = ("transformers", "trl", "sentence_transformers")
_LIGHTNING = ("lightning", "pytorch_lightning")
_KERAS = ("keras", "tensorflow", "tf_keras")


def lines_for(trees: Sequence[ast.Module]) -> str:
    """Return the lines for the first of these frameworks that the code uses; empty for none."""
    code = Code(trees)
    return _huggingface(code) or _lightning(code) or _keras(code)


class Code:
    """Imports, assignments and calls of a training's code."""

    def __init__(self, trees: Sequence[ast.Module]) -> None:
        nodes = [node for tree in trees for node in ast.walk(tree)]
        self.calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._origins = dict(_imported(nodes))
        self.made = dict(_made(nodes))

    def origin(self, call: ast.Call) -> Chain:
        """Return the dotted name of the callee, from the package it was imported from."""
        chain = expressions.chain_of(call.func)
        return (*self._origins.get(chain[0], (chain[0],)), *chain[1:]) if chain else ()

    def uses(self, packages: Sequence[str]) -> bool:
        """Return whether it imports one of these packages."""
        return any(chain[0] in packages for chain in self._origins.values())

    def written(self, call: ast.Call | None, other: ast.Call) -> str:
        """Return another call written in the place of one, with the name of its result."""
        name = next((name for name, made in self.made.items() if made is call), None)
        return ast.unparse(other) if name is None else f"{name} = {ast.unparse(other)}"

    def makers(self, wanted: Callable[[Chain], bool]) -> Mapping[str, ast.Call]:
        """Return the calls of matching functions, by the name of the result."""
        return {name: call for name, call in self.made.items() if wanted(self.origin(call))}


def _imported(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, Chain]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for one in node.names:
                chain = tuple(one.name.split("."))
                yield (one.asname, chain) if one.asname else (chain[0], chain[:1])
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                yield one.asname or one.name, (*node.module.split("."), one.name)


def _made(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            for target in node.targets:
                if chain := expressions.chain_of(target):
                    yield ".".join(chain), node.value


def _huggingface(code: Code) -> str:
    made = code.makers(
        lambda it: it[:1] < it and it[0] in _HUGGINGFACE and it[-1].endswith("Trainer")
    )
    if not made:
        return ""
    name = next(iter(made))
    called = _called(code, f"{name}.train")
    train = called or ast.Call(_expression(f"{name}.train"), [], [])
    train = _with(train, "resume_from_checkpoint", _expression("latest()"))
    return "\n".join(
        [
            "from benchpool.checkpoint.huggingface import HuggingFacePauses, latest",
            "",
            f"{name}.add_callback(HuggingFacePauses())",
            code.written(called, train),
        ]
    )


def _lightning(code: Code) -> str:
    made = code.makers(lambda it: it[0] in _LIGHTNING and it[-1] == "Trainer" if it else False)
    for name, trainer in made.items():
        fit = called = _called(code, f"{name}.fit")
        if fit is None:
            continue
        if len(fit.args) > 1:
            resumable = _resumable(fit.args[1])
            fit = ast.Call(fit.func, [fit.args[0], resumable, *fit.args[2:]], fit.keywords)
        for one in fit.keywords:
            if one.arg == "train_dataloaders":
                fit = _with(fit, one.arg, _resumable(one.value))
        return "\n".join(
            [
                "from benchpool.checkpoint.lightning import LightningPauses",
                "",
                "saving = LightningPauses()",
                f"{name} = {ast.unparse(_with_callback(trainer))}",
                code.written(called, _with(fit, "ckpt_path", _expression("saving.latest()"))),
            ]
        )
    return ""


def _keras(code: Code) -> str:
    if not code.uses(_KERAS):
        return ""
    models = code.makers(lambda it: bool(it) and it[0] in _KERAS)
    for call in code.calls:
        chain = expressions.chain_of(call.func)
        named = any(one.arg == "epochs" for one in call.keywords)
        if chain[-1:] == ("fit",) and (named or ".".join(chain[:-1]) in models):
            fit = _with(_with_callback(call), "initial_epoch", _expression("saving.epoch"))
            return "\n".join(
                [
                    "from benchpool.checkpoint.keras import KerasPauses",
                    "",
                    "saving = KerasPauses()  # a pause within an epoch restarts that epoch",
                    code.written(call, fit),
                ]
            )
    return ""


def _called(code: Code, name: str) -> ast.Call | None:
    chain = tuple(name.split("."))
    return next((it for it in code.calls if expressions.chain_of(it.func) == chain), None)


def _resumable(loader: ast.expr) -> ast.expr:
    return ast.Call(_expression("saving.resumable"), [loader], [])


def _with_callback(call: ast.Call) -> ast.Call:
    """Return a call with benchpool's callback added after its own."""
    had = next((one.value for one in call.keywords if one.arg == "callbacks"), None)
    saving = _expression("saving")
    if had is None:
        items: list[ast.expr] = [saving]
    elif isinstance(had, ast.List):
        items = [*had.elts, saving]
    else:
        items = [ast.Starred(had), saving]
    return _with(call, "callbacks", ast.List(items))


def _with(call: ast.Call, name: str, value: ast.expr) -> ast.Call:
    """Return a call with a keyword argument replaced, or added at the end."""
    keywords = [ast.keyword(it.arg, value if it.arg == name else it.value) for it in call.keywords]
    if all(it.arg != name for it in keywords):
        keywords.append(ast.keyword(name, value))
    return ast.Call(call.func, call.args, keywords)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
