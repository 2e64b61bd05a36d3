"""Pre-training as a task: its examples are pieces of a corpus, its labels are made from the text itself.

Letters: B examples, T tokens.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bertkit.contracts import IGNORE, Batch, Feature, Objective, PieceTokenizer, Token
from bertkit.data.features import collate
from bertkit.data.full_sentences import FullSentences
from bertkit.data.passages import Passage, Passages, Sampling
from bertkit.data.shards import Corpus
from bertkit.draws import Draws
from bertkit.encoders import PooledTransformer
from bertkit.errors import data_error, usage_error
from bertkit.objectives.causal import CausalLanguageModel, label_next
from bertkit.objectives.mlm import MaskedLanguageModel, Masking, mask_tokens
from bertkit.objectives.nsp import NextSentence


@dataclass(frozen=True, kw_only=True)
class PretrainingTask:
    """Masked words and next sentences (paper, section 3.1); or, of a causal encoder, which piece comes ``next``.

    ``copies`` makes the masks static: the corpus is cut and masked in that many ways, which are gone through
    again and again (google-research/bert's ``dupe_factor``, 10 there). None makes every epoch new.
    """

    words: Literal["masked", "next"] = "masked"
    masking: Masking = field(default_factory=Masking)
    sampling: Sampling = field(default_factory=Sampling)
    copies: int | None = None

    def __post_init__(self) -> None:
        if self.words == "next" and self.sampling.next_sentence:
            raise usage_error("task.words is next, which goes without pairs: give task.sampling.next_sentence=false.")

    def source(self, corpus: Corpus, tokenizer: PieceTokenizer, *, seq_length: int, seed: int) -> PretrainingSource:
        """Every example of a corpus split, as batches on demand."""
        return PretrainingSource(self, corpus, tokenizer, seq_length=seq_length, seed=seed)

    def objectives(self, encoder: PooledTransformer) -> dict[str, Objective]:
        """The head of the words, tied to the word embeddings, and the next-sentence head."""
        if self.words == "next":
            return {"causal": CausalLanguageModel(encoder.embeddings.word)}
        config = encoder.config
        words = MaskedLanguageModel(
            encoder.embeddings.word,
            activation=config.activation,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
        )
        if not self.sampling.next_sentence:
            return {"mlm": words}
        sentences = NextSentence(encoder.hidden_size, initializer_range=config.initializer_range)
        return {"mlm": words, "nsp": sentences}


class PretrainingSource:
    """Passages of one corpus split, with labels from themselves; a pure function of (seed, epoch, index)."""

    def __init__(
        self, task: PretrainingTask, corpus: Corpus, tokenizer: PieceTokenizer, *, seq_length: int, seed: int
    ) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.seq_length = seq_length
        self.seed = seed
        specials = 3 if task.sampling.next_sentence else 2
        if seq_length < specials + 2:
            raise data_error(f"seq_length is {seq_length}; {specials} special tokens and two pieces are the least.")
        room = seq_length - specials
        self._cls_id, self._sep_id = _number(tokenizer.cls_id), _number(tokenizer.sep_id)
        self.passages = (
            FullSentences(corpus, room=room, sep_id=self._sep_id)
            if task.sampling.full_sentences
            else Passages(corpus, task.sampling, room=room, seed=seed)
        )
        self._cls = np.array([self._cls_id], dtype=np.int64)
        self._sep = np.array([self._sep_id], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.passages)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """(B, T) passages of ``epoch`` with their labels, padded to the longest."""
        if self.task.copies:
            epoch %= self.task.copies
        features = [self.encode(passage) for passage in self.passages.cut(epoch, indices)]
        batch = collate(features, pad_id=self.tokenizer.pad_id)
        if self.task.words == "next":
            return label_next(batch)
        return mask_tokens(
            batch,
            Draws(self.seed, epoch, indices),
            self.task.masking,
            vocab_size=self.tokenizer.vocab_size,
            mask_id=self.tokenizer.mask_id,
            special_ids=(self._cls_id, self._sep_id),
            continues_word=self.tokenizer.continues_word,
        )

    def encode(self, passage: Passage) -> Feature:
        """``[CLS] A [SEP]`` with B and its label behind it where there is one (0 is next, 1 is random)."""
        first = np.concatenate([self._cls, passage.first, self._sep])
        if passage.second is None:
            return Feature(input_ids=first, segment_ids=np.zeros(len(first), dtype=np.int64))
        input_ids = np.concatenate([first, passage.second, self._sep])
        segment_ids = np.zeros(len(input_ids), dtype=np.int64)
        segment_ids[len(first) :] = 1
        return Feature(input_ids=input_ids, segment_ids=segment_ids, labels={"nsp": int(passage.is_random)})


def _number(token: Token) -> int:
    """The number of a piece, or of a word that also has characters."""
    return token if isinstance(token, int) else token[0]


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """What the examples look like, measured on a sample of them before training starts; shares of one."""

    examples_per_epoch: int
    sampled: int
    random_next_share: float | None
    row_fill: float
    masked_share: float | None
    duplicate_rows: float
    unknown_pieces: float

    def lines(self) -> list[str]:
        """The report for a person."""
        random_next = "none" if self.random_next_share is None else f"{self.random_next_share:.1%} random"
        masked = "none" if self.masked_share is None else f"{self.masked_share:.1%} of real tokens"
        return [
            f"examples an epoch   {self.examples_per_epoch:,}",
            f"next sentences      {random_next}",
            f"row fill            {self.row_fill:.1%}",
            f"masked              {masked}",
            f"duplicate rows      {self.duplicate_rows:.2%}",
            f"unknown pieces      {self.unknown_pieces:.2%}",
        ]

    def record(self) -> dict[str, float | int | None]:
        """The same as plain JSON."""
        return asdict(self)


def report_data(source: PretrainingSource, sample: int = 1024) -> DataReport:
    """Measure ``sample`` examples, evenly spread over the first epoch."""
    count = min(sample, len(source))
    batch = source.batch(0, np.linspace(0, len(source) - 1, count).astype(np.int64))
    real = batch.attention_mask
    tokens = int(real.sum())
    hidden = batch.labels.get("mlm", torch.full_like(batch.input_ids, IGNORE))
    masked = hidden != IGNORE
    original = hidden.where(masked, batch.input_ids)
    rows = {row.numpy().tobytes() for row in original}
    nsp = batch.labels.get("nsp")
    return DataReport(
        examples_per_epoch=len(source),
        sampled=count,
        random_next_share=None if nsp is None else float(nsp.float().mean()),
        row_fill=tokens / (count * source.seq_length),
        masked_share=float(masked.sum()) / tokens if "mlm" in batch.labels else None,
        duplicate_rows=1 - len(rows) / count,
        unknown_pieces=float((original == source.tokenizer.unk_id).sum()) / tokens,
    )
