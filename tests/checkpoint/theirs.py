"""Model folders as another maker writes them, and what can be wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from bertkit.checkpoint.model_folder import save_model
from bertkit.contracts import SubwordTokenizer
from bertkit.model import Model

WEIGHTS = "model.safetensors"


def save_as_theirs(home: Path, model: Model, tokenizer: SubwordTokenizer) -> Path:
    """A folder without our record."""
    save_model(home / "theirs", model, tokenizer, metadata={})
    (home / "theirs" / "bertkit.json").unlink()
    return home / "theirs"


def rewrite(folder: Path, **changes: Tensor | None) -> None:
    """The weights again, with some tensors added or replaced, and those of None left out."""
    tensors = {**load_file(folder / WEIGHTS), **changes}
    save_file({name: each.contiguous() for name, each in tensors.items() if each is not None}, folder / WEIGHTS)


def reconfigure(folder: Path, **changes: Any) -> None:
    """The configuration again, with some values added or replaced."""
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
