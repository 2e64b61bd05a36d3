"""A tiny GPT with random weights, as a model folder of this project and as OpenAI published GPT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.transformers_folders import reconfigure, rewrite, save_without_metadata
from tests.tiny_runs import WORDS

from bertkit.checkpoint.model_folder import ModelFolder
from bertkit.checkpoint.save_model import save_model
from bertkit.encoders import gpt
from bertkit.finetuning.record import FinetuneRun
from bertkit.finetuning.starting_point import build_encoder
from bertkit.model import Model
from bertkit.tasks.glue import sst2
from bertkit.text import bpe


@pytest.fixture(scope="module")
def left_to_right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with 3 layers of width 12."""
    folder = tmp_path_factory.mktemp("model") / "gpt"
    tokenizer = bpe.train([" ".join(WORDS)] * 7, vocab_size=67)
    torch.manual_seed(7)
    encoder = gpt.Gpt(gpt.size("3/12/2", vocab_size=tokenizer.vocab_size, max_positions=37))
    save_model(folder, Model(encoder, {}), tokenizer, metadata={})
    return folder


@pytest.fixture
def published(tmp_path: Path, left_to_right: Path) -> Path:
    """The same in the published layout: without the three special tokens for fine-tuning."""
    encoder, tokenizer = ModelFolder.open(left_to_right).load_encoder(), ModelFolder.open(left_to_right).tokenizer
    folder = save_without_metadata(tmp_path, Model(encoder, {}), tokenizer)
    _, start, delimiter, extract = tokenizer.tokens_to_ids(bpe.SpecialTokens())  # type: ignore[attr-defined]
    assert (start, delimiter, extract) == (1, 2, 3), "they come first in our vocabulary, and last in the published one"
    kept = [0, *range(4, tokenizer.vocab_size)]
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    vocabulary = {tokenizer.id_to_token(old): new for new, old in enumerate(kept)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    rewrite(folder, **{"tokens_embed.weight": load_file(folder / "model.safetensors")["tokens_embed.weight"][kept]})
    reconfigure(folder, vocab_size=len(kept))
    return folder


def build_gpt(model: Path, **settings: Any) -> gpt.Gpt:
    """The encoder that a fine-tuning of ``model`` with these settings begins with."""
    run = FinetuneRun(task=sst2, model=model, output=Path("run"), **settings)
    encoder = build_encoder(run, ModelFolder.open(model))
    assert isinstance(encoder, gpt.Gpt)
    return encoder
