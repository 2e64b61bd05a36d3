"""A name is a file: ``glue:sst2`` is the value ``sst2`` of ``tasks/glue.py``; nothing is registered anywhere.

``my_lab.irony:irony`` (a dot in the module) is a value of the user's own importable module.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

from bertkit.errors import did_you_mean, usage_error


def shelf(folder: str) -> list[str]:
    """The public files of a shelf such as ``tasks``, in alphabetical order."""
    package = importlib.import_module(f"bertkit.{folder}")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if not module.name.startswith("_"))


def values(folder: str, kind: type) -> dict[str, Any]:
    """Every value of ``kind`` on a shelf, by the name that a user types."""
    found = {}
    for file in shelf(folder):
        module = importlib.import_module(f"bertkit.{folder}.{file}")
        for attribute, value in vars(module).items():
            if isinstance(value, kind) and not attribute.startswith("_"):
                found[f"{file}:{attribute}" if attribute != file else file] = value
    return found


def find(folder: str, name: str, kind: type) -> Any:
    """The value that ``name`` spells on the shelf ``folder``; a wrong name lists the shelf.

    A file that exists and fails to import raises its own error.
    """
    file, _, attribute = name.partition(":")
    if "." in file:
        value = getattr(importlib.import_module(file), attribute or file.rpartition(".")[2], None)
        if isinstance(value, kind):
            return value
        raise usage_error(f'{file} has no {kind.__name__} named "{attribute}".')
    known = values(folder, kind)
    if name in known:
        return known[name]
    raise usage_error(
        f'no {folder.rstrip("s")} named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}.'
    )
