"""Pre-training as a task: its examples are pieces of a corpus, its labels are made from the text itself.

Letters: B examples, T tokens.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertkit.batch import IGNORE, Batch, Feature, Token, number_of
from bertkit.contracts import Encoder, Objective, SubwordTokenizer
from bertkit.data.features import collate
from bertkit.data.full_sentences import FullSentences
from bertkit.data.running_text import RunningText
from bertkit.data.segment_pairs import Sampling, SegmentPair, SegmentPairs
from bertkit.data.shards import Corpus
from bertkit.encoder_types import PretrainingObjective
from bertkit.errors import data_error, usage_error
from bertkit.objectives.bilm import BidirectionalLanguageModel
from bertkit.objectives.clm import CausalLanguageModel, label_next
from bertkit.objectives.mlm import MaskedLanguageModel, Masking, mask_tokens
from bertkit.objectives.nsp import NextSentencePrediction
from bertkit.rng import CounterRng
from bertkit.task_types.word_streams import StreamSource
from bertkit.text.words import WordLevel


@dataclass(frozen=True, kw_only=True)
class PretrainingTask:
    """Masked words and next sentences (paper, section 3.1); or, of a causal encoder, which piece comes ``next``.

    ``copies`` makes the masks static: the corpus is cut and masked in that many ways, which are gone through
    again and again (google-research/bert's ``dupe_factor``, 10 there). None makes every epoch new.

    ELMo is asked for both ``neighbours`` of a word, among the first ``targets`` of the vocabulary; in training against
    so many drawn ``samples``, with None against all.
    """

    words: PretrainingObjective = "masked"
    masking: Masking = field(default_factory=Masking)
    sampling: Sampling = field(default_factory=Sampling)
    copies: int | None = None
    targets: int | None = None
    samples: int | None = None

    def __post_init__(self) -> None:
        if self.words != "masked" and self.sampling.next_sentence:
            raise usage_error(
                f"task.words is {self.words}, which goes without pairs: give task.sampling.next_sentence=false."
            )
        if (self.words == "neighbours") != (self.targets is not None):
            raise usage_error(
                f"task.words is {self.words} and task.targets {self.targets}: give targets, how many words are told "
                "apart, with neighbours and with them alone."
            )

    def source(self, corpus: Corpus, tokenizer: SubwordTokenizer, *, seq_length: int, seed: int) -> Source:
        """Every example of a corpus split, as batches on demand."""
        if self.targets is not None:
            if not isinstance(tokenizer, WordLevel):
                raise usage_error(
                    "task.words is neighbours, which are whole words: bertkit tokenizer train --kind words."
                )
            return StreamSource(corpus, tokenizer, targets=self.targets, seq_length=seq_length, seed=seed)
        return PretrainingSource(self, corpus, tokenizer, seq_length=seq_length, seed=seed)

    def objectives(self, encoder: Encoder) -> dict[str, Objective]:
        """The head of the words, tied to the word embeddings, and the next-sentence head.

        Of neighbours it is a softmax of its own.
        """
        if self.targets is not None:
            return {"bilm": BidirectionalLanguageModel(encoder.hidden_size, self.targets, num_samples=self.samples)}
        table, config = encoder.get_submodule("embeddings.word"), cast(Any, encoder.config)
        assert isinstance(table, nn.Embedding)
        if self.words == "next":
            return {"causal": CausalLanguageModel(table)}
        words = MaskedLanguageModel(
            table,
            activation=config.activation,
            layer_norm_eps=config.layer_norm_eps,
            initializer_range=config.initializer_range,
        )
        if not self.sampling.next_sentence:
            return {"mlm": words}
        sentences = NextSentencePrediction(encoder.hidden_size, initializer_range=config.initializer_range)
        return {"mlm": words, "nsp": sentences}


class PretrainingSource:
    """Passages of one corpus split, with labels from themselves; a pure function of (seed, epoch, index)."""

    def __init__(
        self, task: PretrainingTask, corpus: Corpus, tokenizer: SubwordTokenizer, *, seq_length: int, seed: int
    ) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.seq_length = seq_length
        self.seed = seed
        if task.words == "masked" and tokenizer.mask_id == tokenizer.unk_id:
            raise usage_error("task.words is masked, and this tokenizer has no piece that stands for hidden ones.")
        self._cls, self._sep = _numbers(tokenizer.cls_id), _numbers(tokenizer.sep_id)
        self._between = _numbers(*tokenizer.between_ids)
        specials = self._count_specials()
        if seq_length < specials + 2:
            raise data_error(f"seq_length is {seq_length}; {specials} special tokens and two pieces are the least.")
        self.passages = self._lay_rows(corpus, seq_length - specials)

    def _count_specials(self) -> int:
        if self.task.sampling.running_text:
            return 0
        return 2 + len(self._between) * self.task.sampling.next_sentence

    def _lay_rows(self, corpus: Corpus, room: int) -> SegmentPairs | FullSentences | RunningText:
        sampling = self.task.sampling
        if sampling.running_text:
            return RunningText(corpus, row_length=room, seed=self.seed)
        if sampling.full_sentences:
            return FullSentences(corpus, max_tokens=room, sep_id=int(self._sep[0]))
        return SegmentPairs(corpus, sampling, max_tokens=room, seed=self.seed)

    def __len__(self) -> int:
        return len(self.passages)

    def batch(self, epoch: int, indices: NDArray[np.int64]) -> Batch:
        """(B, T) passages of ``epoch`` with their labels, padded to the longest."""
        if self.task.copies:
            epoch %= self.task.copies
        features = [self.encode(passage) for passage in self.passages.segments(epoch, indices)]
        batch = collate(features, pad_id=self.tokenizer.pad_id)
        if self.task.words == "next":
            return label_next(batch)
        return mask_tokens(
            batch,
            CounterRng(self.seed, epoch, indices),
            self.task.masking,
            vocab_size=self.tokenizer.vocab_size,
            mask_id=self.tokenizer.mask_id,
            special_ids=[*self._cls.tolist(), *self._sep.tolist()],
            continues_word=self.tokenizer.continues_word,
        )

    def encode(self, passage: SegmentPair) -> Feature:
        """``[CLS] A [SEP]`` with B and its label behind it where there is one (0 is next, 1 is random).

        Running text is A alone.
        """
        if self.task.sampling.running_text:
            parts = [passage.first]
        elif passage.second is None:
            parts = [self._cls, passage.first, self._sep]
        else:
            parts = [self._cls, passage.first, self._between, passage.second, self._sep]
        input_ids = np.concatenate(parts).astype(np.int64)
        segment_ids = np.zeros(len(input_ids), dtype=np.int64)
        if passage.second is None:
            return Feature(input_ids=input_ids, segment_ids=segment_ids)
        segment_ids[-len(passage.second) - 1 :] = 1
        return Feature(input_ids=input_ids, segment_ids=segment_ids, labels={"nsp": int(passage.is_random)})


def _numbers(*tokens: Token) -> NDArray[np.int64]:
    """(T,) the numbers of so many tokens."""
    return np.array([number_of(token) for token in tokens], dtype=np.int64)


Source = PretrainingSource | StreamSource


@dataclass(frozen=True, kw_only=True)
class DataReport:
    """What the examples look like, measured on a sample of them before training starts; shares of one."""

    examples_per_epoch: int
    sampled: int
    random_next_share: float | None
    row_fill: float
    masked_share: float | None
    duplicate_rows: float
    unknown_tokens: float

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
            f"unknown pieces      {self.unknown_tokens:.2%}",
        ]

    def record(self) -> dict[str, float | int | None]:
        """The same as plain JSON."""
        return asdict(self)


def report_data(source: Source, sample: int = 1024) -> DataReport:
    """Measure ``sample`` examples, evenly spread over the first epoch."""
    count = min(sample, len(source))
    batch = source.batch(0, np.linspace(0, len(source) - 1, count).astype(np.int64))
    real = batch.attention_mask
    tokens = int(real.sum())
    read = batch.input_ids if batch.input_ids.ndim == 2 else batch.input_ids[..., 0]
    hidden = batch.labels.get("mlm", torch.full_like(read, IGNORE))
    masked = hidden != IGNORE
    original = hidden.where(masked, read)
    rows = {row.numpy().tobytes() for row in original}
    nsp = batch.labels.get("nsp")
    return DataReport(
        examples_per_epoch=len(source),
        sampled=count,
        random_next_share=None if nsp is None else float(nsp.float().mean()),
        row_fill=tokens / (count * source.seq_length),
        masked_share=float(masked.sum()) / tokens if "mlm" in batch.labels else None,
        duplicate_rows=1 - len(rows) / count,
        unknown_tokens=float(((original == source.tokenizer.unk_id) & real).sum()) / tokens,
    )
