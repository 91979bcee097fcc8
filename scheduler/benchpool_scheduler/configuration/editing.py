"""Edits of the text of a ``benchpool.yaml`` that leave the rest of it unchanged.

Comments, order and quotes stay. The result is compared with the same change of the plain data. A
text in which one value stands for several (an alias) is rejected, because an edit would change all.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from functools import lru_cache
from typing import Any, NoReturn

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import CommentMark, YAMLError
from ruamel.yaml.scalarstring import DoubleQuotedScalarString
from ruamel.yaml.tokens import CommentToken

from benchpool_scheduler.configuration.loader import SECTIONS
from benchpool_scheduler.configuration.nodes import nearest, with_quoted_names
from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.errors import InvalidInput

Place = tuple[str, ...]

PERSONAL = ("personal_projects", "each")
"""Names of one key of a project, the present one first; the file may have either."""
BOUNDS = ("cpus", "memory_gib", *PERSONAL, "gpu_hours")
QUOTAS = ("users", "groups")
LISTS = frozenset({"members", "leads"})
PLAIN_SECTIONS = (
    *("policy", "budgets", "retention", "gpu_hours"),
    *("idle_benches", "retries", "hanging"),
)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML loader equal to ``safe_load``, ten times as fast if PyYAML has its C library."""
_DASH = re.compile(r"^projects:[^\n]*\n(?:[ \t]*(?:#[^\n]*)?\n)*( *)-", re.MULTILINE)


def edited(text: str, settings: Iterable[Setting], source: str = "benchpool.yaml") -> str:
    """Return the text with some values set, without the checks of the loader.

    Args:
        text: Text in force; an empty one becomes one with a ``version``.

    Errors: InvalidInput for a key that cannot be set, or a text that cannot be changed in this way.

    >>> print(edited("version: 1\\nbuild:\\n  default: 0  # of all others\\n",
    ...              [Setting("build.default", 1), Setting("build.users.ann.lee", 2)]), end="")
    version: 1
    build:
      default: 1  # of all others
      users:
        ann.lee: 2
    """
    settings = tuple(settings)
    text = with_quoted_names(text) if text.strip() else "version: 1\n"
    document, writer = _read(text, source)
    wanted = _plain(text)
    for setting in settings:
        place = place_of(setting.key)
        _set(wanted, place, setting, commented=False)
        _set(document, place, setting, commented=True)
    stream = io.StringIO()
    writer.dump(document, stream)
    new = stream.getvalue()
    if _plain(new) != wanted:
        raise InvalidInput(
            f"{source} cannot be changed here without changing other values too (it uses anchors "
            "or unusual YAML): edit the file and run `benchpool config apply FILE`.",
            code="configuration",
        )
    return new


def tried(text: str, settings: Iterable[Setting], source: str = "benchpool.yaml") -> Any:
    """Return the data of the text that ``edited`` would write, in a tenth of the time.

    None for a text that ``edited`` rejects or that has aliases. Errors: as ``edited``.

    >>> tried("version: 1  # ours", [Setting("build.default", 1)])
    {'version': 1, 'build': {'default': 1}}
    """
    known = _editable(text, source)
    if known is None:
        return None
    wanted = json.loads(known)
    for setting in settings:
        _set(wanted, place_of(setting.key), setting, commented=False)
    return wanted


@lru_cache(maxsize=2)
def _editable(text: str, source: str) -> str | None:
    """Return a text's data as JSON, or None if its data cannot be edited alone."""
    try:
        edited(text, (), source)
    except InvalidInput:
        return None
    aliased = any(isinstance(one, yaml.AliasEvent) for one in yaml.parse(text, LOADER))
    return None if aliased else json.dumps(_plain(with_quoted_names(text)))


def place_of(key: str) -> Place:
    """Split a dotted key into its parts; names may contain dots.

    Errors: InvalidInput for a key that cannot be set on its own.

    >>> place_of("build.users.ann.lee")
    ('build', 'users', 'ann.lee')
    >>> place_of("projects.vision.2.memory_gib.quota")
    ('projects', 'vision.2', 'memory_gib', 'quota')
    """
    section, _, rest = key.partition(".")
    parts = rest.split(".")
    if section == "projects" and len(parts) >= 2:
        last = 2 if len(parts) >= 3 and parts[-2] in BOUNDS else 1
        last = 3 if len(parts) >= 4 and parts[-3] in PERSONAL and parts[-2] == "gpu_hours" else last
        return ("projects", ".".join(parts[:-last]), *parts[-last:])
    if section == "build" and len(parts) >= 2 and parts[0] in QUOTAS:
        return "build", parts[0], rest.partition(".")[2]
    if section == "gpu_hours" and len(parts) >= 3 and parts[0] == "users":
        return section, "users", ".".join(parts[1:-1]), parts[-1]
    if section in ("build", *PLAIN_SECTIONS) and len(parts) == 1 and rest not in ("", *QUOTAS):
        return section, rest
    example = "build.users.NAME, projects.NAME.quota or policy.grace_s"
    hint = nearest(section, SECTIONS).rstrip(".?")
    raise InvalidInput(
        f"{key!r} cannot be set by itself{hint if section not in SECTIONS else ''}: write "
        f"{example}. Pools and topology are changed in the file.",
        field="key",
    )


def command_of(settings: Iterable[Setting]) -> str:
    """Return the terminal command for the same change.

    >>> command_of([Setting("projects.vision.quota", 3),
    ...             Setting("projects.vision.members", add=["joe", "ann"])])
    'benchpool config set projects.vision.quota=3 projects.vision.members+=joe,ann'
    """
    return " ".join(["benchpool config set", *(_quoted(word) for one in settings
                                               for word in _words(one))])  # fmt: skip


def _words(one: Setting) -> Iterable[str]:
    if one.add:
        yield f"{one.key}+={','.join(one.add)}"
    if one.remove:
        yield f"{one.key}-={','.join(one.remove)}"
    if not one.add and not one.remove:
        value = "" if one.value is None else one.value
        yield f"{one.key}={json.dumps(value) if isinstance(value, bool | list) else value}"


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w@%+=:,./-]+", word) else "'" + word.replace("'", "'\\''") + "'"


# --------------------------------------------------------------------------- setting


def _set(document: Any, place: Place, setting: Setting, *, commented: bool) -> None:
    """Set a value in plain data, or in a document that keeps comments."""
    parent = _project(document, place, setting, commented) if place[0] == "projects" else document
    if parent is None:
        return  # the project itself was added or removed
    path = place[2:] if place[0] == "projects" else place
    if path[0] in PERSONAL:
        path = (next((key for key in PERSONAL if key in parent), PERSONAL[0]), *path[1:])
    _set_below(parent, path, setting, commented)


def _set_below(parent: Any, path: Place, setting: Setting, commented: bool) -> None:
    key = _key(parent, path[0])
    if len(path) == 1:
        _put_value(parent, key, setting, commented)
    elif parent.get(key) is not None:
        if not isinstance(parent[key], MutableMapping):
            _no_mapping(setting)
        _set_below(parent[key], path[1:], setting, commented)
    elif setting.value is not None:
        # Filled before it is inserted, since comments are attached to existing values.
        made = CommentedMap() if commented else {}
        _set_below(made, path[1:], setting, commented)
        _put(parent, key, made, commented)


def _put_value(parent: Any, key: Any, setting: Setting, commented: bool) -> None:
    if setting.add or setting.remove:
        _change_list(parent, key, setting, commented)
    elif setting.value is None:
        if key in parent:
            _take(parent, key, commented)
    else:
        value = setting.value
        if key in LISTS and not isinstance(value, list):
            raise InvalidInput(
                f"{setting.key} is a list: add with {setting.key}+={value}, remove with "
                f"{setting.key}-={value}.",
                field="key",
            )
        if isinstance(value, list):
            value = [_scalar(each, commented) for each in value]
            value = _flow_list(value) if commented else value
        else:
            value = _scalar(value, commented)
        _put(parent, key, value, commented)


def _change_list(parent: Any, key: Any, setting: Setting, commented: bool) -> None:
    if parent.get(key) is None:
        _put(parent, key, _flow_list([]) if commented else [], commented)
    members = parent[key]
    if not isinstance(members, MutableSequence):
        raise InvalidInput(f"{setting.key} is not a list: set it with `=`.", field="key")
    for gone in setting.remove:
        if gone not in members:
            raise InvalidInput(f"{setting.key} has no {gone!r}.", field="key")
        members.remove(gone)
    for new in setting.add:
        if new not in members:
            _append(members, _scalar(new, commented), commented)


def _project(document: Any, place: Place, setting: Setting, commented: bool) -> Any:
    """Return the mapping of a project, or None after the whole project was added or removed."""
    name, key = place[1], place[2]
    if document.get("projects") is None:
        _put(document, "projects", CommentedSeq() if commented else [], commented)
    projects = document["projects"]
    if not isinstance(projects, MutableSequence):
        _no_mapping(setting)
    there = [each for each in projects if isinstance(each, MutableMapping)]
    found = next((each for each in there if str(each.get("name")) == name), None)
    if key == "name":
        _whole_project(projects, found, name, setting, commented)
        return None
    if found is None:
        known = [str(each.get("name")) for each in there]
        raise InvalidInput(
            f"There is no project {name!r}{nearest(name, known).rstrip('.')} "
            f"(`projects.{name}.name={name}` creates it).",
            field="key",
        )
    return found


def _whole_project(projects: Any, found: Any, name: str, setting: Setting, commented: bool) -> None:
    if setting.value is None:
        if found is None:
            raise InvalidInput(f"There is no project {name!r} to remove.", field="key")
        if commented:
            _keep_tail(projects, lambda: projects.remove(found))
        else:
            projects.remove(found)
    elif setting.value != name:
        raise InvalidInput(
            f"Projects cannot be renamed: set {setting.key} to {name!r} to create the project, or "
            "to nothing to remove it.",
            field="key",
        )
    elif found is not None:
        raise InvalidInput(f"Project {name!r} already exists.", field="key")
    else:
        body = CommentedMap() if commented else {}
        body["name"] = _scalar(name, commented)
        _append(projects, body, commented)


def _no_mapping(setting: Setting) -> NoReturn:
    raise InvalidInput(
        f"{setting.key} cannot be set, because its parent has another type in the file. Edit the "
        "file and run `benchpool config apply FILE`.",
        field="key",
    )


def _key(mapping: Mapping[Any, Any], name: str) -> Any:
    """Return a key as in the document: YAML reads the user name 123 as a number."""
    found = next((key for key in mapping if str(key) == name), None)
    return _scalar(name, isinstance(mapping, CommentedMap)) if found is None else found


def _scalar(value: Any, commented: bool) -> Any:
    """Return a value that YAML reads unchanged, quoted if it looks like a number."""
    if not commented or not isinstance(value, str):
        return value
    try:
        same = yaml.safe_load(value) == value
    except yaml.YAMLError:
        same = False
    return value if same else DoubleQuotedScalarString(value)


def _flow_list(values: Sequence[Any]) -> CommentedSeq:
    made = CommentedSeq(values)
    made.fa.set_flow_style()
    return made


# --------------------------------------------------------------------------- comments


def _put(mapping: Any, key: Any, value: Any, commented: bool) -> None:
    if commented and key not in mapping:
        _keep_tail(mapping, lambda: mapping.__setitem__(key, value))
    else:
        mapping[key] = value


def _take(mapping: Any, key: Any, commented: bool) -> None:
    if commented:
        _keep_tail(mapping, lambda: mapping.pop(key))
    else:
        mapping.pop(key)


def _append(sequence: Any, value: Any, commented: bool) -> None:
    if commented and not sequence.fa.flow_style():
        _keep_tail(sequence, lambda: sequence.append(value))
    else:
        sequence.append(value)


def _keep_tail(container: Any, change: Any) -> None:
    """Change a container and move the comment lines after its last value to its new end.

    The library would leave them at the previous last value.
    """
    lines = _cut_tail(container)
    change()
    if lines:
        _add_tail(container, lines)


def _last(container: Any) -> tuple[Any, Any, int]:
    """Return the place of the comment after the last value of a container."""
    key = len(container) - 1 if isinstance(container, CommentedSeq) else list(container)[-1]
    inner = container[key]
    if isinstance(inner, CommentedMap | CommentedSeq) and inner and not inner.fa.flow_style():
        return _last(inner)
    return container, key, 0 if isinstance(container, CommentedSeq) else 2


def _cut_tail(container: Any) -> str:
    if not container or container.fa.flow_style():
        return ""
    holder, key, slot = _last(container)
    token = (holder.ca.items.get(key) or [None] * 4)[slot]
    if token is None:
        return ""
    first, line_feed, rest = token.value.partition("\n")
    if first:
        token.value = first + line_feed
    else:
        holder.ca.items[key][slot] = None
    return str(rest)


def _add_tail(container: Any, lines: str) -> None:
    if not container or container.fa.flow_style():
        return
    holder, key, slot = _last(container)
    slots = holder.ca.items.setdefault(key, [None, None, None, None])
    before = slots[slot]
    if before is None:
        slots[slot] = CommentToken("\n" + lines, CommentMark(0), None)
    else:
        before.value = before.value.rstrip("\n") + "\n" + lines


# --------------------------------------------------------------------------- text and data


def _read(text: str, source: str) -> tuple[Any, YAML]:
    writer = YAML()
    writer.preserve_quotes = True
    writer.width = 1_000_000
    dash = _DASH.search(text)
    offset = 2 if dash is None else len(dash.group(1))
    writer.indent(mapping=2, sequence=offset + 2, offset=offset)
    try:
        return writer.load(text), writer
    except YAMLError:
        raise InvalidInput(
            f"{source} cannot be changed here: it is not YAML 1.2. Edit the file and run "
            "`benchpool config apply FILE`.",
            code="configuration",
        ) from None


def _plain(text: str) -> Any:
    """Return a text's data as a copy without shared values."""
    return json.loads(json.dumps(yaml.load(text, LOADER), default=str))  # noqa: S506
