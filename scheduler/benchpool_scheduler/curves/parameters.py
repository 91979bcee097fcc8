"""Names and values of a submission, for comparison with those of another job. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from benchpool_scheduler import phrases
from benchpool_scheduler.contract import CommandEntry, JobSubmission, ModuleEntry, ScriptEntry
from benchpool_scheduler.contract.options import OPTIONS
from benchpool_scheduler.contract.parameters import ParameterValue

LONGEST = 200
NONE = "–"
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_SET = re.compile(r"\+{0,2}[A-Za-z_][\w./]*")


def parameters_of(submission: JobSubmission) -> dict[str, str]:
    """Return options, variables and each argument of a submission by name.

    A parameter that also occurs in the arguments, as in trials, is listed once.
    """
    found = options_of(submission)
    match submission.entry:
        case CommandEntry(argv=argv):
            program, args = shortened(argv[0]), argv[1:]
        case ScriptEntry(path=program, args=args) | ModuleEntry(module=program, args=args):
            pass
        case _:
            return found
    given = {name: argument_text(value) for name, value in submission.parameters.items()}
    named = arguments_of(args).items()
    arguments = {name: text for name, text in named if given.get(name.lstrip("-")) != text}
    return found | {"program": program} | arguments


def argument_text(value: ParameterValue) -> str:
    """Return a parameter as a sweep writes it into arguments.

    >>> argument_text(1e-05), argument_text(True), argument_text("adam")
    ('1e-05', 'true', 'adam')
    """
    return value if isinstance(value, str) else json.dumps(value)


def options_of(submission: JobSubmission) -> dict[str, str]:
    """Return the options, the parameters by their own names, and the variables of a submission."""
    found = {
        _title(option.field): _value(option.field, getattr(submission, option.field))
        for option in OPTIONS
        if option.field not in ("name", "env", "parameters")
    }
    found |= {name: shortened(str(value)) for name, value in submission.parameters.items()}
    variables = sorted(submission.env.items())
    return found | {f"variable {name}": shortened(value) for name, value in variables}


def arguments_of(args: Sequence[str]) -> dict[str, str]:
    """Return the arguments of a command by the names that most programs give them.

    >>> arguments_of(["--lr", "0.1", "--fast", "--seed=3", "data.csv", "model.depth=4"])
    {'--lr': '0.1', '--fast': 'yes', '--seed': '3', 'argument 1': 'data.csv', 'model.depth': '4'}
    """
    return {name: shortened(value) for name, value in _arguments(args)}


def _arguments(args: Iterable[str]) -> Iterator[tuple[str, str]]:
    flag, place = "", 0
    for word in args:
        name, equals, value = word.partition("=")
        if _FLAG.fullmatch(name):
            if flag:
                yield flag, "yes"
            flag = "" if equals else name
            if equals:
                yield name, value
        elif flag:
            yield flag, word
            flag = ""
        elif equals and _SET.fullmatch(name):
            yield name, value
        else:
            place += 1
            yield f"argument {place}", word
    if flag:
        yield flag, "yes"


def command_line(args: Sequence[str]) -> str:
    """Return arguments as a shell command line."""
    return shortened(shlex.join(args))


def shortened(text: str) -> str:
    """Return a text shortened to fit a table cell."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _title(field: str) -> str:
    """Return the display name of a field.

    >>> _title("gpu_models"), _title("time_limit_s"), _title("cpus")
    ('GPU models', 'time limit', 'CPUs')
    """
    words = field.removesuffix("_s").removesuffix("_gib").replace("_", " ")
    return re.sub(r"\b[gc]pu", lambda found: found.group().upper(), words)


def _value(field: str, value: object) -> str:
    match value:
        case None | () | "":
            return NONE
        case bool():
            return "yes" if value else "no"
        case tuple() | list():
            return shortened(", ".join(str(one) for one in value))
        case int() | float() if field.endswith("_s"):
            return phrases.duration(value)
        case float() | int() if field.endswith("_gib"):
            return f"{value:g} GiB" if value else NONE
    return shortened(str(value))
