"""A tiny BERT with large random weights, so that its answers differ, and its tokenizer."""

from __future__ import annotations

from bertkit.encoders.bert import Bert, BertConfig
from bertkit.text.wordpiece import WordPiece, train

SENTENCES = [
    "seven wide rivers ran slowly past the old stone mill",
    "the miller counted seven old coins by the river",
    "past the mill the river ran wide and slowly",
    "nobody counted the stones of the old river mill",
]


def make_tokenizer() -> WordPiece:
    return train(SENTENCES * 5, vocab_size=99)


def make_encoder(tokenizer: WordPiece) -> Bert:
    """A new encoder, with weights from torch's random state."""
    shape = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=14,
        num_layers=2,
        num_heads=2,
        intermediate_size=37,
        max_positions=41,
        initializer_range=0.5,
    )
    return Bert(shape)
