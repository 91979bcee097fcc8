"""The page of refusals from the source: every sentence that a rule or a check can answer with.

The product does not import this. A sentence's variable parts are shown as ``‹name›``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler import errors

ROOT = Path(__file__).resolve().parents[1]
CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.BenchpoolError)
}
PLACES = (
    (
        "Starting a notebook server",
        "on the start form, the pending page and the failed page, and in the Hub's REST response",
        (
            "spawner/benchpool_spawner",
            "scheduler/benchpool_scheduler/service/benches/reservations.py",
            "scheduler/benchpool_scheduler/service/benches/parking.py",
        ),
    ),
    (
        "Sending a job",
        "in the dialog before and after Send, in the terminal, in Python, and in the HTTP response",
        (
            "scheduler/benchpool_scheduler/service/access/membership.py",
            "scheduler/benchpool_scheduler/service/jobs/submission_checks.py",
            "scheduler/benchpool_scheduler/service/jobs/self_test_checks.py",
            "scheduler/benchpool_scheduler/service/jobs/feasibility.py",
            "scheduler/benchpool_scheduler/service/jobs/size_checks.py",
            "scheduler/benchpool_scheduler/service/jobs/uploads.py",
            "scheduler/benchpool_scheduler/client/snapshot.py",
            "scheduler/benchpool_scheduler/client/notebooks",
            "extension/benchpool",
        ),
    ),
    (
        "Changing or viewing a job",
        "as a message in panel and page, in the terminal, in Python, and in the HTTP response",
        (
            "scheduler/benchpool_scheduler/service/lifecycle/transitions.py",
            "scheduler/benchpool_scheduler/service/access/rights.py",
            "scheduler/benchpool_scheduler/service/jobs/commands.py",
            "scheduler/benchpool_scheduler/service/jobs/lookup.py",
            "scheduler/benchpool_scheduler/service/jobs/logs.py",
            "scheduler/benchpool_scheduler/web",
        ),
    ),
    (
        "Notifications",
        "on the page *Notifications*, in the terminal, and in the HTTP response",
        (
            "scheduler/benchpool_scheduler/notifications",
            "scheduler/benchpool_scheduler/service/administration/notifier.py",
            "scheduler/benchpool_scheduler/web/notifications_page.py",
        ),
    ),
    (
        "Configuration",
        "by `benchpool config check` and `apply`, by `benchpool whatif`, in the HTTP response, and "
        "by `benchpool up` with exit status 2",
        (
            "scheduler/benchpool_scheduler/configuration",
            "scheduler/benchpool_scheduler/service/administration/reconfiguration.py",
            "scheduler/benchpool_scheduler/service/administration/whatifs.py",
            "scheduler/benchpool_scheduler/simulation/whatif.py",
            "scheduler/benchpool_scheduler/core/benches/quotas.py",
        ),
    ),
    (
        "Any request",
        "in the HTTP response, and in the client that sent the request",
        (
            "scheduler/benchpool_scheduler/api",
            "scheduler/benchpool_scheduler/client/credentials.py",
        ),
    ),
    (
        "On the machine",
        "in the terminal of `benchpool up`, `down` and `doctor`, and in the log",
        (
            "scheduler/benchpool_scheduler/workstation",
            "scheduler/benchpool_scheduler/cli",
            "scheduler/benchpool_scheduler/store",
            "scheduler/benchpool_scheduler/runtime",
        ),
    ),
)

PACKAGES = ("scheduler/benchpool_scheduler", "spawner/benchpool_spawner", "extension/benchpool")
ELSEWHERE = (
    "Other errors",
    "in the terminal, on the page, in Python, in the HTTP response or in the log",
)
"""Heading and place for the sentences of all other modules of the packages."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Sentence with its class, code and field."""

    sentence: str
    status: str
    code: str
    field: str

    def row(self) -> str:
        """Return the row of the table."""
        cells = (self.sentence, self.status, f"`{self.code}`" if self.code else "", self.field)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def text_of(node: ast.expr) -> str | None:
    """Return a literal text with its variable parts marked, or None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [
            part.value
            if isinstance(part, ast.Constant)
            else f"‹{_name(part.value) if isinstance(part, ast.FormattedValue) else '…'}›"
            for part in node.values
        ]
        return "".join(map(str, parts))
    return None


def _name(node: ast.expr) -> str:
    """Return a short name of a variable part: the last plain word of the expression."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Subscript(value=value):
            return _name(value)
        case ast.Call(func=ast.Name(id="len"), args=[value]):
            return f"number of {_name(value)}"
        case ast.Call(func=ast.Attribute(attr="join"), args=[value, *_]):
            return _name(value)
        case ast.Call(args=[value, *_]):
            return _name(value)
        case ast.Call(func=function):
            return _name(function)
        case _:
            return "…"


def refusals_of(path: Path) -> Iterator[Refusal]:
    """Yield the refusals that a module raises, in order."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        sentence = text_of(node.args[0])
        if sentence is None or not (name in CLASSES or name in ("StartRefused", "wrong")):
            continue
        words = {k.arg: text_of(k.value) or "" for k in node.keywords}
        if name == "wrong":
            yield Refusal(f"‹file›, line ‹line›: ‹key› {sentence}", "422", "configuration", "")
        elif name == "StartRefused":
            yield Refusal(sentence, "409", words.get("reason", ""), "")
        else:
            kind = CLASSES[name]
            code = words.get("code") or kind.default_code
            yield Refusal(sentence, str(kind.http_status), code, words.get("field", ""))


def page() -> str:
    """Return the page."""
    lines = [
        "<!-- generated by docs/generate.py: do not edit -->\n",
        "# Refusals\n",
        "This page lists every error message of a rule or a check, read from the code. Parts in "
        "‹…› are replaced by names, numbers and limits. *Status* is the HTTP status. In the "
        "terminal, bad input (4xx) exits with 2, a refusal by a rule with 3, and 503 with 4.\n",
    ]
    places = [(title, where, _of(folders)) for title, where, folders in PLACES]
    named = {path for _, _, paths in places for path in paths}
    others = [path for path in _of(PACKAGES) if path not in named]
    for title, where, paths in (*places, (*ELSEWHERE, others)):
        found = [refusal for path in paths for refusal in refusals_of(path)]
        lines += [f"## {title}\n", f"Shown {where}.\n"]
        lines += ["| message | status | code | field |", "|---|---|---|---|"]
        lines += [refusal.row() for refusal in dict.fromkeys(found)]
        lines.append("")
    return "\n".join(lines)


def _of(places: Sequence[str]) -> list[Path]:
    """Return the modules in these folders, and the modules that are listed themselves."""
    found = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return found
