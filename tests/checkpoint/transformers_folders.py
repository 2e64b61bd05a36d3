"""Model folders as transformers writes them, without ``bertkit.json``, and with changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from bertkit.checkpoint.save_model import save_model
from bertkit.contracts import SubwordTokenizer
from bertkit.model import Model

WEIGHTS = "model.safetensors"


def save_without_metadata(home: Path, model: Model, tokenizer: SubwordTokenizer) -> Path:
    """A model folder without ``bertkit.json``."""
    save_model(home / "hf", model, tokenizer, metadata={})
    (home / "hf" / "bertkit.json").unlink()
    return home / "hf"


def rewrite(folder: Path, **changes: Tensor | None) -> None:
    """Add or replace tensors of the weights, and delete those that are None."""
    tensors = {**load_file(folder / WEIGHTS), **changes}
    save_file({name: each.contiguous() for name, each in tensors.items() if each is not None}, folder / WEIGHTS)


def reconfigure(folder: Path, **changes: Any) -> None:
    """Add or replace values of the configuration."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
