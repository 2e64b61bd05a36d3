"""The prepared corpus of a pre-training run, opened and verified once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertkit.contracts import SubwordTokenizer
from bertkit.data.shards import Corpus


@dataclass(frozen=True, kw_only=True)
class PretrainingData:
    """The training and held-out splits of a DATA folder, and the tokenizer that made them."""

    train: Corpus
    heldout: Corpus
    tokenizer: SubwordTokenizer

    @classmethod
    def open(cls, folder: Path) -> PretrainingData:
        """Open a DATA folder and compare every byte of its shards with the checksums in the manifest."""
        train = Corpus.open(folder)
        return cls(train=train, heldout=Corpus.open(folder, "heldout"), tokenizer=train.load_tokenizer())
