"""A small model of odd sizes, whose weights are neither constant nor near zero."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from bertkit.encoders.bert import Bert, BertConfig
from bertkit.text.wordpiece import WordPiece

SUBWORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(chr(letter) for letter in range(ord("a"), ord("z") + 1))]


@pytest.fixture
def tokenizer(tmp_path: Path) -> WordPiece:
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(SUBWORDS), encoding="utf-8")
    return WordPiece.load(folder)


@pytest.fixture
def encoder() -> Bert:
    shape = BertConfig(
        vocab_size=37,
        hidden_size=14,
        num_layers=3,
        num_heads=2,
        intermediate_size=23,
        max_positions=41,
        num_segments=3,
        dropout=0.2,
        attention_dropout=0.3,
        layer_norm_eps=1e-7,
        initializer_range=0.03,
        pad_id=0,
    )
    built = Bert(shape)
    for weight in built.parameters():
        nn.init.normal_(weight, mean=0.1, std=0.5)
    return built
