"""Trainings with their own loop: that loop as ``checkpoint.loop``, with what it changes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from benchpool.resume_offers import carried_names, training_loops


def lines_for(trees: Sequence[ast.Module]) -> str:
    """Return the first lines of the changed loop.

    Empty if there is no such loop, or if nothing that it changes is visible.

    >>> code = "net = Net()\\nfor x in data:\\n    loss(net(x)).backward()\\n    opt.step()"
    >>> print(lines_for([ast.parse("opt = Adam(net.parameters())\\n" + code)]))
    from benchpool import checkpoint
    <BLANKLINE>
    for x in checkpoint.loop(data, net=net, opt=opt):
    """
    statements = [statement for tree in trees for statement in tree.body]
    found = training_loops.find(statements)
    if found is None:
        return ""
    carried = dict.fromkeys([*carried_names.changed(statements), *carried_names.gathered(found)])
    if not carried:
        return ""
    carries = _named(carried)
    lines = ["from benchpool import checkpoint", "", _head(found.around, carries)]
    for depth, loop in enumerate(found.inside, 1):
        lines.append("    " * depth + _head(loop, ""))
    if numbers := carried_names.numbers(found):
        names = " and ".join(numbers)
        lines.append(f"# {names}: reset after a pause; to keep values, pass a dict of them")
    return "\n".join(lines)


def _named(carried: Iterable[str]) -> str:
    """Return objects as keyword arguments with unique names.

    >>> _named(["self.net", "loss", "other.net"])
    ', net=self.net, loss=loss, other_net=other.net'
    """
    found: dict[str, str] = {}
    for name in carried:
        short = name.rpartition(".")[2]
        found[name.replace(".", "_") if short in found else short] = name
    return "".join(f", {key}={name}" for key, name in found.items())


def _head(loop: ast.For, carries: str) -> str:
    return f"for {_target(loop.target)} in checkpoint.loop({ast.unparse(loop.iter)}{carries}):"


def _target(target: ast.expr) -> str:
    text = ast.unparse(target)
    return text[1:-1] if isinstance(target, ast.Tuple) else text
