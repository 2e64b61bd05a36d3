"""bertkit: raw text to a pre-trained BERT, to a model for a task, to predictions.

Every verb of the command line is a function here, with the same name and the same options. Importing this package
takes milliseconds: ``__init__.pyi`` lists its names, and the module of a name is imported when it is first used.
"""

from __future__ import annotations

import gc

import lazy_loader

_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """A name of ``__init__.pyi``, imported without garbage collections: with PyTorch they are hundreds, and 0.3 s."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return _find(name)
    finally:
        if enabled:
            gc.enable()
