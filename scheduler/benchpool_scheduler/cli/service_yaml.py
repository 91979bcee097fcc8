"""Reading of a service from YAML, with line and key in errors."""

from __future__ import annotations

import yaml

from benchpool_scheduler.api import decoding
from benchpool_scheduler.client.service_documents import ServiceDocument
from benchpool_scheduler.configuration.nodes import BoundedLoader, compose
from benchpool_scheduler.errors import InvalidInput


def read(text: str, source: str) -> ServiceDocument:
    """Return the service that a YAML text describes.

    Raises:
        InvalidInput: It is not YAML, has an unknown or repeated key, or an invalid value.

    >>> read("name: chat\\nscript: answer.py\\nmax: 3", "f").max
    3
    >>> read("name: chat\\ngpu: 1", "f")
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.InvalidInput: f, line 2: gpu is not a known key; did you mean `gpus`?
    """
    document = compose(text, source)
    if document is None:
        raise InvalidInput(f"{source} is empty. Write a service's name and what it runs.",
                           field="file")  # fmt: skip
    items = document.entries(ServiceDocument.__struct_fields__)
    for name, item in items["env"].entries().items() if "env" in items else ():
        if not isinstance(item.scalar(), str):
            item.wrong(f"must be text: put the value of {name} into quotes.")
    try:
        (found,) = yaml.load_all(text, BoundedLoader)
        return decoding.plain(found, ServiceDocument)
    except InvalidInput as bad:
        key = (bad.field or "").split(".")[0].split("[")[0]
        where = f"{source}, line {items[key].line}" if key in items else source
        raise InvalidInput(f"{where}: {bad.message}", code=bad.code, field=bad.field) from None
    except (yaml.YAMLError, RecursionError):
        raise InvalidInput(f"{source} is not plain YAML. Write keys as words, and nothing that "
                           "contains itself.", field="file") from None  # fmt: skip
