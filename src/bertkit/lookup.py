"""A name is a module: ``glue:sst2`` is the value ``sst2`` of ``tasks/glue.py``; nothing is registered.

A name with a dot, such as ``my_lab.irony:irony``, is a module outside bertkit that Python can import. What a user
types is imported. What a file names, such as the record of a run or the config.json of a model from elsewhere, is
imported only if the user has named that package in this process, or in the environment variable ``BERTKIT_TRUST``:
opening a file must not run code that came with it.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from shlex import quote
from types import ModuleType
from typing import TypeVar

from bertkit.errors import did_you_mean, usage_error

T = TypeVar("T")

TRUST = "BERTKIT_TRUST"
"""Environment variable: packages or modules outside bertkit, separated by commas, that files may name."""

_OWN = __name__.partition(".")[0]

_named_by_a_file: ContextVar[bool] = ContextVar("named_by_a_file", default=False)
_named_by_the_user: set[str] = set()


@contextmanager
def names_from_a_file() -> Iterator[None]:
    """Within this context, modules outside bertkit are named by a file and not by the user."""
    token = _named_by_a_file.set(True)
    try:
        yield
    finally:
        _named_by_a_file.reset(token)


def list_modules(package: str) -> list[str]:
    """The public modules of a plug-in package such as ``tasks``, in alphabetical order."""
    found = importlib.import_module(f"bertkit.{package}")
    return sorted(module.name for module in pkgutil.iter_modules(found.__path__) if not module.name.startswith("_"))


def load_module(package: str, name: str) -> ModuleType:
    """The module ``name`` of a plug-in package, or outside bertkit if it has a dot.

    An unknown name is a usage error that lists the package. A module that fails to import raises its own error.
    """
    if "." in name.strip("."):
        return _load_outside(name)
    full_name = f"bertkit.{package}.{name}"
    if full_name not in sys.modules or name.startswith("_"):  # the folder is not listed again for every batch
        known = list_modules(package)
        if name not in known:
            raise _unknown(package, name, known)
    return importlib.import_module(full_name)


def find_class(package: str, name: str, base: type[T]) -> type[T]:
    """The one subclass of ``base`` that the module ``name`` defines."""
    module = load_module(package, name)
    defined = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    found = [each for each in defined if issubclass(each, base)]
    if len(found) == 1:
        return found[0]
    names = " and ".join(each.__name__ for each in found or defined) or "no class"
    raise usage_error(f"{module.__file__} defines {names}; it must define one class that derives from {base.__name__}.")


def values(package: str, kind: type[T]) -> dict[str, T]:
    """Every value of ``kind`` in a package, by the name that a user types."""
    found: dict[str, T] = {}
    for name in list_modules(package):
        found |= _values_of(importlib.import_module(f"bertkit.{package}.{name}"), name, kind)
    return found


def find(package: str, name: str, kind: type[T]) -> T:
    """The value called ``name``; for an unknown name the error lists the package."""
    module, _, attribute = name.partition(":")
    if "." in module.strip("."):
        return find_outside(f"{module}:{attribute or module.rpartition('.')[2]}", kind)
    if module in list_modules(package):
        found = _values_of(load_module(package, module), module, kind)
        if name in found:
            return found[name]
    raise _unknown(package, name, list(values(package, kind)))


def find_outside(name: str, kind: type[T]) -> T:
    """The value ``my_lab.irony:irony`` of a module outside bertkit, or ``irony:irony`` of one without a package."""
    module, _, attribute = name.partition(":")
    loaded = _load_outside(module)
    value = getattr(loaded, attribute, None)
    if isinstance(value, kind):
        return value
    others = [each for each in _values_of(loaded, module, kind) if ":" in each]
    advice = f" There are: {', '.join(others)}." if others else ""
    raise usage_error(f'{module} has no {kind.__name__} named "{attribute}".{advice}')


def spell_trust() -> str:
    """What a command begins with to open what this process has written: ``BERTKIT_TRUST=my_lab `` or nothing."""
    packages = sorted(_trusted())
    return f"{TRUST}={quote(','.join(packages))} " if packages else ""


def import_trusted() -> None:
    """Import the modules that the environment variable names by a dotted path."""
    for name in _trusted():
        if "." in name:
            _load_outside(name)


def _trusted() -> set[str]:
    """The packages and modules that files may name."""
    return {*_named_by_the_user, *os.environ.get(TRUST, "").split(",")} - {""}


def _load_outside(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise usage_error(f'"{name}" is not the name of a Python module, such as my_lab.irony.')
    package = name.partition(".")[0]
    if package != _OWN and not _named_by_a_file.get():
        _named_by_the_user.add(package)
    elif not (package == _OWN or name in sys.modules or any(f"{name}.".startswith(f"{each}.") for each in _trusted())):
        raise usage_error(
            f"a file names the module {name}, which is code outside bertkit. If you trust it, set {TRUST}={package}, "
            f"or import {package} first."
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # the module exists and imports something that does not
        raise usage_error(
            f"no Python module {name}: install its package, or add the folder that holds it to PYTHONPATH."
        ) from error


def _values_of(module: ModuleType, name: str, kind: type[T]) -> dict[str, T]:
    return {
        f"{name}:{attribute}" if attribute != name else name: value
        for attribute, value in vars(module).items()
        if isinstance(value, kind) and not attribute.startswith("_")
    }


def _unknown(package: str, name: str, known: Sequence[str]) -> Exception:
    return usage_error(
        f'no {package.rstrip("s")} named "{name}".{did_you_mean(name, known)} There are: {", ".join(known)}.'
    )
