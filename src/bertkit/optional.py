"""Modules that only some jobs need, imported when such a job starts.

They are libraries that an extra of bertkit installs, and libraries and parts of torch that take long to import, such as
scikit-learn and scipy: 1.2 s of CPU time, and no prediction needs them. Imported at the top of a module, they would be
needed, or waited for, by every command.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from bertkit.errors import usage_error

_NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1", "RAY_USAGE_STATS_ENABLED": "0"}
"""onnxruntime and Ray send facts about the machine to their makers unless a variable forbids it. onnxruntime writes an
identifier of the machine into the user's cache as soon as it is imported."""


def load(module: str) -> ModuleType:
    """Import a module of an installed library at its first use."""
    for name, value in _NO_TELEMETRY.items():
        os.environ.setdefault(name, value)
    return importlib.import_module(module)


def require(module: str, *, extra: str, purpose: str, library: str = "") -> ModuleType:
    """Import a module that ``extra`` installs; where it is missing, the usage error says what to install.

    Where it is installed and fails, for want of a shared library for example, the error says why.

    ``purpose`` begins the message, such as "--trials"; ``library`` is the name of the library if the module's own name
    does not begin with it.
    """
    library = library or module.partition(".")[0]
    try:
        return load(module)
    except ModuleNotFoundError as error:
        raise usage_error(f"{purpose} needs {library}: pip install 'bertkit[{extra}]'.") from error
    except ImportError as error:
        raise usage_error(f"{purpose} needs {library}, which cannot be imported: {str(error).rstrip('.')}.") from error
