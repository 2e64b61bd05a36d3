"""Names of models on the Hugging Face hub, and the copies that are on this machine."""

from __future__ import annotations

import re
from pathlib import Path

from bertkit.optional import load

_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")


def is_hub_id(source: str) -> bool:
    """Whether ``source`` is spelled like the name of a model on the hub, org/name, and is no path in a folder here."""
    return _ID.fullmatch(source) is not None and not Path(source).parent.exists()


def describe_partial_copy(folder: Path) -> str:
    """What to do if ``folder`` is in the cache of huggingface_hub, which may have a part of a model; else empty."""
    cached = folder.parent.parent.name
    if folder.parent.name != "snapshots" or not cached.startswith("models--"):
        return ""
    name = cached.removeprefix("models--").replace("--", "/", 1)
    return f" The cache of huggingface_hub has a part of {name}: bertkit import {name} -o {name.rpartition('/')[2]}"


def find_downloaded(name: str) -> Path | None:
    """The folder of the model ``name`` in the cache of huggingface_hub, where any library may have put it.

    None if ``name`` is no name of a model, or the model is not there. The network is not used.
    """
    if not is_hub_id(name):
        return None
    hub = load("huggingface_hub")  # comes with tokenizers
    try:
        return Path(hub.snapshot_download(name, local_files_only=True))
    except (hub.errors.LocalEntryNotFoundError, hub.errors.HFValidationError):
        return None
