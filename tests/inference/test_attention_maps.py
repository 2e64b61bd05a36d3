"""Attention beside that of transformers, on a real model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from bertkit.checkpoint.save_model import save_model
from bertkit.encoders.bert import Bert
from bertkit.errors import BertkitError
from bertkit.inference.attention_maps import read_attention
from bertkit.inference.pipeline import load
from bertkit.model import Model
from bertkit.text.wordpiece import WordPiece


def test_the_weights_are_those_of_transformers(minilm: Path) -> None:
    text = "The old mill stands by the river, unbelievably."
    ours = read_attention(load(minilm), text)
    model = AutoModel.from_pretrained(minilm, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(minilm)
    encoded = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        theirs = torch.stack(model(**encoded, output_attentions=True).attentions)[:, 0].numpy()
    assert list(ours.tokens) == tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
    assert ours.weights.shape == theirs.shape == (6, 12, len(ours.tokens), len(ours.tokens))
    assert ours.weights == pytest.approx(theirs, abs=1e-5)


def save(folder: Path, encoder: Bert, tokenizer: WordPiece) -> Path:
    save_model(folder / "model", Model(encoder, {}), tokenizer, metadata={})
    return folder


def test_each_token_gives_all_of_its_attention(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    maps = read_attention(load(save(tmp_path, encoder, tokenizer)), "the river ran", "past the mill")
    assert maps.tokens[-1] == "[SEP]"
    assert maps.weights.sum(axis=-1) == pytest.approx(np.ones(maps.weights.shape[:3]), abs=1e-6)


def test_what_is_left_out_is_counted(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    maps = read_attention(load(save(tmp_path, encoder, tokenizer)), "river " * 60)
    assert len(maps.tokens) == 41
    assert maps.num_truncated == 60 - 39


def test_too_many_tokens_are_refused_before_anything_is_computed(
    tmp_path: Path, encoder: Bert, tokenizer: WordPiece, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = load(save(tmp_path, encoder, tokenizer))
    loaded: list[object] = []
    monkeypatch.setattr(type(pipeline.models[0]), "load_encoder", lambda *_, **__: loaded.append(None))
    with pytest.raises(BertkitError, match=r"the text has 62 tokens; a page shows up to 40: shorten it"):
        read_attention(pipeline, "river " * 60, most_tokens=40)
    assert not loaded


def test_the_encoder_that_was_read_does_not_stay_in_memory(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    pipeline = load(save(tmp_path, encoder, tokenizer))
    before = pipeline.embed("the river ran")
    loaded = vars(pipeline).get("encoder")
    read_attention(pipeline, "the river ran")
    assert vars(pipeline).get("encoder") is loaded
    assert (pipeline.embed("the river ran") == before).all()
    assert not any(module._forward_pre_hooks for module in pipeline.encoder.modules())


def test_an_ensemble_has_no_attention_of_its_own(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    pipeline = load(save(tmp_path, encoder, tokenizer))
    pipeline.models *= 2
    with pytest.raises(BertkitError, match="the models of an ensemble have no vectors in common"):
        read_attention(pipeline, "the river ran")


def test_a_text_is_needed(tmp_path: Path, encoder: Bert, tokenizer: WordPiece) -> None:
    text: object = 7
    with pytest.raises((BertkitError, TypeError)):
        read_attention(load(save(tmp_path, encoder, tokenizer)), text)  # type: ignore[arg-type]
