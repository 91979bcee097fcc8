"""Options of ``submit``: one table for command line, cell magic and Python.

Each option is a field of a submission. Its type, bounds and default are those of the field. This
module holds only its spelling and its help.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

from msgspec import NODEFAULT, Meta, inspect, structs

from benchpool_scheduler.contract import durations, field_types, instants
from benchpool_scheduler.contract.parameters import WrittenValue
from benchpool_scheduler.contract.scalars import PRIORITY_HELP
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.contract.submission import JobSubmission
from benchpool_scheduler.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class SubmitOption:
    """Option of ``submit``.

    Attributes:
        field: Field of ``JobSubmission`` that it sets.
        flag: Spelling in a terminal or after ``%%train``.
        help: One sentence.
        keyword: Name in Python; empty if it is that of the flag.
        metavar: Placeholder of its value in a help; empty for that of the type.
        negates: The flag sets its field to false; the field is true without it.
        short: Alternative spelling with one letter.
    """

    field: str
    flag: str
    help: str
    keyword: str = ""
    metavar: str = ""
    negates: bool = False
    short: str = ""

    @property
    def name(self) -> str:
        """Return its name in Python."""
        return self.keyword or self.flag.removeprefix("--").replace("-", "_")


_WRITTEN = (
    SubmitOption("gpus", "--gpus", "Number of GPUs per worker."),
    SubmitOption("workers", "--workers", "Number of workers."),
    SubmitOption("min_workers", "--min-workers", "Smallest number of workers to run with."),
    SubmitOption("project", "--project", "Project; required if you belong to several."),
    SubmitOption("name", "--name", "Name of the job; the script's by default."),
    SubmitOption("priority", "--priority", PRIORITY_HELP),
    SubmitOption(
        "preemptible",
        "--non-preemptible",
        "Never pause the job for others. It must fit the guaranteed quota.",
        keyword="preemptible",
        negates=True,
    ),
    SubmitOption(
        "time_limit_s",
        "--time-limit",
        f"Time limit of an attempt: {durations.WAYS}.",
        metavar="TIME",
    ),
    SubmitOption(
        "deadline",
        "--deadline",
        f"Deadline: {instants.WAYS}. benchpool reports whether the job will meet it; the order of "
        "jobs stays the same.",
        metavar="WHEN",
    ),
    SubmitOption(
        "gpu_models",
        "--gpu-model",
        "Accepted GPU model, best first; any by default.",
        keyword="gpu_models",
        metavar="MODEL",
    ),
    SubmitOption(
        "required_level",
        "--level",
        "All workers in one domain of this level, such as rack or node, or the job waits.",
        metavar="LEVEL",
    ),
    SubmitOption(
        "preferred_level",
        "--prefer-level",
        "All workers in one domain of this level where possible.",
        metavar="LEVEL",
    ),
    SubmitOption("spread", "--spread", "Every worker on a machine of its own where possible."),
    SubmitOption(
        "after",
        "--after",
        "Queue it when these jobs or arrays have succeeded; if one does not, it is not run.",
        metavar="ID[,ID...]",
    ),
    SubmitOption(
        "after_any",
        "--after-any",
        "With --after: queue it when those jobs have ended, with any outcome.",
    ),
    SubmitOption("cpus", "--cpus", "Number of processor cores per worker.", metavar="C"),
    SubmitOption(
        "memory_gib", "--memory", "Memory per worker, in GiB.", keyword="memory_gib", metavar="GIB"
    ),
    SubmitOption("image", "--image", "Container image to run in; on clusters.", metavar="IMAGE"),
    SubmitOption(
        "env",
        "--env",
        "Variable of the job; a bare K takes its value from this environment.",
        metavar="K=V",
    ),
    SubmitOption(
        "parameters",
        "--parameter",
        "Parameter of a notebook, or constant of the cells, with its value.",
        keyword="parameters",
        metavar="NAME=VALUE",
        short="-p",
    ),
)


def _others() -> Iterator[SubmitOption]:
    """Yield an option for each ``JobSpec`` field without an entry above."""
    named = {option.field for option in _WRITTEN}
    for field in structs.fields(JobSpec):
        if field.name in named:
            continue
        many = isinstance(field.default, tuple)
        word = (field.name.removesuffix("s") if many else field.name).replace("_", "-")
        about = next(it for it in get_args(field.type) if isinstance(it, Meta)).description or ""
        yield SubmitOption(field.name, f"--{word}", about, field.name, word.upper())


OPTIONS = (*_WRITTEN, *_others())
"""All options, in the order of the help."""

FLAGS = {option.field: option.flag for option in OPTIONS}
"""Flag of each field of a job, for ``submit`` and every other verb."""


@dataclass(frozen=True, slots=True)
class Value:
    """Value that an option takes.

    Attributes:
        type: Type of one value; ``bool`` for an option without a value.
        many: It may be given more than once.
        duration: Seconds that may be written as ``90m``.
        instant: A time that may be written as a duration from now.
        least, most: Bounds of a number, None for none.
        default: Value of the field without the option.
        choices: Allowed words of a closed list; several may be separated by commas.
    """

    type: type[bool | int | float | str]
    many: bool = False
    duration: bool = False
    least: float | None = None
    most: float | None = None
    default: Any = None
    choices: tuple[str, ...] = ()
    instant: bool = False


def value_of(option: SubmitOption) -> Value:
    """Return the value that an option takes, from its field.

    >>> value_of(OPTIONS[0]).least, value_of(OPTIONS[0]).most, value_of(OPTIONS[0]).default
    (1, 1024, 1)
    """
    found: Any = inspect.type_info(JobSubmission)
    field: inspect.Field = next(it for it in found.fields if it.name == option.field)
    default = None if field.default is NODEFAULT else field.default
    kind, _ = field_types.plain(field.type)
    match kind:
        case inspect.BoolType():
            return Value(bool, default=default)
        case inspect.IntType():
            lasts = option.field.endswith("_s")
            return Value(int, duration=lasts, least=kind.ge, most=kind.le, default=default)
        case inspect.FloatType():
            return Value(float, least=kind.ge, most=kind.le, default=float(default or 0))
        case inspect.VarTupleType(item_type=inspect.EnumType(cls=words)):
            return Value(str, many=True, default=(), choices=tuple(str(word) for word in words))
        case inspect.VarTupleType() | inspect.DictType():
            return Value(str, many=True, default=())
        case inspect.EnumType(cls=words):
            return Value(str, default=default, choices=tuple(str(word) for word in words))
        case inspect.DateTimeType():
            return Value(str, instant=True, default=default)
    return Value(str, default=default)


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a submission from values of options. None values are left out.

    Args:
        given: Values by the option's name in Python, as Python takes them: a mapping for ``env``,
            a sequence where an option may be given more than once.

    Raises:
        InvalidInput: A value is not a valid duration, time or choice.

    >>> fields_of({"gpus": 2, "time_limit": "1m", "name": None, "gpu_models": ["H100"]})
    {'gpus': 2, 'time_limit_s': 60, 'gpu_models': ('H100',)}
    """
    found: dict[str, Any] = {}
    for option in OPTIONS:
        value = given.get(option.name)
        if value is None:
            continue
        if option.field == "after":
            found[option.field] = refs_of(value)
        elif isinstance(value, Mapping):
            found[option.field] = dict(value)
        elif isinstance(value, str) and value_of(option).duration:
            found[option.field] = seconds_of(option, value)
        elif value_of(option).instant:
            found[option.field] = instant_of(option, value)
        elif choices := value_of(option).choices:
            chosen = tuple(_chosen(option, value, choices))
            found[option.field] = chosen if value_of(option).many else chosen[0]
        else:
            found[option.field] = tuple(value) if value_of(option).many else value
    return found


def _chosen(option: SubmitOption, given: Sequence[str], choices: Sequence[str]) -> Iterator[str]:
    """Yield the given words of a closed list, split at commas. Errors: InvalidInput."""
    given = [given] if isinstance(given, str) else given
    for word in (word.strip() for text in given for word in text.split(",")):
        if word not in choices:
            raise InvalidInput(
                f"{option.flag} {word} is not known. Choose from {', '.join(choices)}.",
                field=option.field,
            )
        yield word


def refs_of(jobs: object) -> tuple[str, ...]:
    """Return the references to jobs from ids, comma-separated ids, or objects with an ``id``.

    >>> refs_of(["41ab23cd,7k2m3n4p", "q3x4"]), refs_of("41ab23cd")
    (('41ab23cd', '7k2m3n4p', 'q3x4'), ('41ab23cd',))
    """
    listed = jobs if isinstance(jobs, list | tuple) else (jobs,)
    words = (str(getattr(job, "id", job)).split(",") for job in listed)
    return tuple(word.strip() for some in words for word in some if word.strip())


def seconds_of(option: SubmitOption, text: str) -> int:
    """Return the seconds of a written duration. Errors: InvalidInput.

    >>> seconds_of(next(it for it in OPTIONS if it.field == "time_limit_s"), "90m")
    5400
    """
    takes = value_of(option)
    return durations.read(text, option.flag, option.field, takes.least, takes.most)


def instant_of(option: SubmitOption, given: str | datetime) -> datetime:
    """Return an instant with its zone. Errors: InvalidInput."""
    now = datetime.now().astimezone().replace(microsecond=0)
    if isinstance(given, datetime):
        return instants.zoned(given, now)
    return instants.read(given, option.flag, option.field, now)


def written(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Convert values as written after flags to values as Python takes them.

    Args:
        given: Values by the option's name; a negating flag is True if it was written.
        environ: Variables that give a bare name of ``--env`` its value.

    Raises:
        InvalidInput: A variable has no value here, or a parameter is not NAME=VALUE.
    """
    found = {option.name: given.get(option.name) for option in OPTIONS}
    for option in OPTIONS:
        if option.negates:
            found[option.name] = not found[option.name]
    found["parameters"] = typed(found["parameters"] or ())
    return found | {"env": environment(found["env"] or (), environ)}


def typed(pairs: Sequence[str]) -> dict[str, WrittenValue]:
    """Parse ``-p NAME=VALUE`` pairs; the notebook determines the type of a value."""
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise InvalidInput(
                f"-p {pair} is not NAME=VALUE. Write the parameter's name, = and its value.",
                field="parameters",
            )
        found[name] = WrittenValue(value)
    return found


def environment(pairs: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """Parse ``--env K=V`` pairs. A bare name takes its value from ``environ``.

    >>> environment(["A=1", "HOME"], {"HOME": "/h"})
    {'A': '1', 'HOME': '/h'}
    """
    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign and name not in environ:
            raise InvalidInput(
                f"--env {name} has no value and is not set here. Write --env {name}=VALUE.",
                field="env",
            )
        found[name] = value if sign else environ[name]
    return found


def words_of(submission: JobSubmission, usual: Mapping[str, Any]) -> list[str]:
    """Return the flags of a submission, without those that equal the defaults.

    Args:
        usual: Fields with another default than their own.

    >>> from benchpool_scheduler.contract.submission import ScriptEntry
    >>> words_of(JobSubmission(ScriptEntry("a.py"), gpus=2, preemptible=False), {})
    ['--gpus', '2', '--non-preemptible']
    """
    words = []
    plain = structs.asdict(submission)
    for option in OPTIONS:
        value, takes = plain[option.field], value_of(option)
        if value == usual.get(option.field, takes.default) or (takes.many and not value):
            continue
        if takes.type is bool:
            words.append(option.flag)
            continue
        pairs = [f"{k}={v}" for k, v in value.items()] if isinstance(value, dict) else value
        for one in pairs if takes.many else (value,):
            words += [option.flag, str(one)]
    return words
