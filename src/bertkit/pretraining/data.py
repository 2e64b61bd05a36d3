"""The prepared corpus of a pre-training run, opened and verified once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertkit.contracts import SubwordTokenizer
from bertkit.data.shards import TOKENIZER, Corpus
from bertkit.errors import usage_error

LEAST_DOCUMENTS = 2
"""Held-out text of fewer documents is not evaluated."""


@dataclass(frozen=True, kw_only=True)
class PretrainingData:
    """The training and held-out splits of a DATA folder, and the tokenizer that made them.

    ``also`` is the held-out split of a second folder, which is evaluated too.
    """

    train: Corpus
    heldout: Corpus
    tokenizer: SubwordTokenizer
    also: Corpus | None = None

    @classmethod
    def open(cls, folder: Path, also: Path | None = None) -> PretrainingData:
        """Open a DATA folder and compare every byte of its shards with the checksums in the manifest.

        Raises a usage error if ``also`` has other tokens, or no held-out documents.
        """
        train = Corpus.open(folder)
        return cls(
            train=train,
            heldout=Corpus.open(folder, "heldout"),
            tokenizer=train.load_tokenizer(),
            also=None if also is None else _open_also(also, train),
        )


def _open_also(folder: Path, train: Corpus) -> Corpus:
    corpus = Corpus.open(folder, "heldout")
    if corpus.manifest.tokenizer != train.manifest.tokenizer:
        raise usage_error(
            f"{folder} was prepared with another tokenizer than {train.folder}; prepare it with --tokenizer "
            f"{train.folder / TOKENIZER}."
        )
    if corpus.num_documents < LEAST_DOCUMENTS:
        raise usage_error(f"{folder} has no held-out text to evaluate on: prepare it with a larger --heldout.")
    return corpus
