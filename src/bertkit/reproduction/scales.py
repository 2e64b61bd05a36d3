"""The sizes of a reproduction: the paper's own, or those that a small machine can train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from bertkit.errors import usage_error
from bertkit.ranges import (
    BatchSize,
    LearningRate,
    OpenShare,
    PositiveFloat,
    PositiveInt,
    Range,
    Repetitions,
    ShareBelowOne,
    VocabularySize,
    Width,
    WordLength,
    check_ranges,
)

LONGEST = 512
"""Positions of every network, in tokens."""

_RowLength = Annotated[int, Range(8, LONGEST)]
"""A pair of texts fits into 8 tokens, with the special tokens."""

_Subwords = Annotated[int, Range(261, 1_000_000)]
"""Every byte, and RoBERTa's five special tokens."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The sizes and settings that all systems of a reproduction share. ``--set`` changes single fields.

    ``sizes`` (layers/width/heads) are the six of Table 6 in ascending order; the fourth is BERT-Base, the last
    BERT-Large. ``corpus_megabytes`` of text are read, or all of it with None; the share ``heldout`` is for evaluation.
    ``profile`` names settings of pre-training (``pretraining/defaults.py``) that no field has. With ``cased`` one
    vocabulary serves all tasks; without it, as in the paper, named entities have their own cased models.
    ``masking_rate`` is the share of tokens that are selected for prediction. ``snapshots`` models are saved during
    pre-training, for Figure 5. ``elmo`` is a size of ELMo, ``word_vocab_size`` its vocabulary, of which the ``targets``
    most frequent words are predicted. Word models (``baseline_...``) have LSTMs of the published width times
    ``baseline_share``, and learning rate and epochs of their own, as only their inputs are pre-trained. ``seeds``,
    ``epochs``, ``finetuning_batch_size`` and ``learning_rates`` are those of fine-tuning; the learning rate that is
    best on dev counts, as in the paper. With ``mean_heads`` BERT, its ablations and RoBERTa are fine-tuned with heads
    that read the mean of a text's states instead of [CLS], compare two texts, and look for the words of a question.
    ``limit`` and ``dev_limit`` are the largest numbers of training and dev examples; ``max_length`` and
    ``span_length``, for SQuAD, are tokens.
    """

    name: str
    sizes: tuple[str, str, str, str, str, str]
    corpus_megabytes: PositiveFloat | None
    heldout: OpenShare
    vocab_size: _Subwords
    cased: bool
    profile: Literal["paper", "fast"]
    steps: PositiveInt
    batch_size: BatchSize
    seq_length: _RowLength
    long_seq_length: _RowLength | None
    long_share: ShareBelowOne
    masking_rate: OpenShare
    snapshots: PositiveInt
    elmo: str
    word_vocab_size: Annotated[int, Range(5, 1_000_000)]
    targets: VocabularySize
    word_length: WordLength
    vector_size: Width
    baseline_share: PositiveFloat
    seeds: Repetitions
    epochs: Repetitions
    finetuning_batch_size: BatchSize
    learning_rates: tuple[LearningRate, ...]
    mean_heads: bool
    baseline_lr: LearningRate
    baseline_epochs: Repetitions
    limit: PositiveInt | None
    dev_limit: PositiveInt | None
    max_length: _RowLength
    span_length: _RowLength

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.snapshots > self.steps:
            raise usage_error(f"snapshots is {self.snapshots}; it must be at most steps, which is {self.steps}.")
        if self.long_seq_length and not self.long_share:
            raise usage_error("long_seq_length is the length of the last long_share of the steps: set both.")
        if not self.learning_rates:
            raise usage_error("learning_rates is empty; give at least one, such as [5e-5].")

    @property
    def base(self) -> str:
        """The size of BERT-Base, of its ablations, and of the networks compared with it."""
        return self.sizes[3]

    @property
    def large(self) -> str:
        """The size of BERT-Large."""
        return self.sizes[5]


SMOKE = Scale(
    name="smoke",
    sizes=("1/32/2", "2/32/1", "2/32/2", "3/32/2", "3/48/3", "4/48/3"),
    corpus_megabytes=1,
    heldout=0.1,
    vocab_size=1000,
    cased=True,
    profile="fast",
    steps=20,
    batch_size=32,
    seq_length=32,
    long_seq_length=None,
    long_share=0.0,
    masking_rate=0.15,
    snapshots=2,
    elmo="2/16/32",
    word_vocab_size=3000,
    targets=1000,
    word_length=16,
    vector_size=16,
    baseline_share=0.05,
    seeds=1,
    epochs=1,
    finetuning_batch_size=16,
    learning_rates=(1e-3,),
    mean_heads=True,
    baseline_lr=1e-3,
    baseline_epochs=1,
    limit=48,
    dev_limit=48,
    max_length=64,
    span_length=128,
)
"""Proves that every path works; its figures mean nothing."""

TINY = Scale(
    name="tiny",
    sizes=("1/256/4", "2/256/1", "2/256/4", "4/256/4", "4/384/6", "8/384/6"),
    corpus_megabytes=None,
    heldout=0.01,
    vocab_size=8000,
    cased=True,
    profile="fast",
    steps=12_000,
    batch_size=64,
    seq_length=32,
    long_seq_length=128,
    long_share=0.05,
    masking_rate=0.3,
    snapshots=5,
    elmo="2/128/512",
    word_vocab_size=50_000,
    targets=8000,
    word_length=20,
    vector_size=100,
    baseline_share=0.25,
    seeds=3,
    epochs=3,
    finetuning_batch_size=32,
    learning_rates=(3e-4,),
    mean_heads=True,
    baseline_lr=1e-3,
    baseline_epochs=8,
    limit=3000,
    dev_limit=1000,
    max_length=128,
    span_length=256,
)
"""For about two days on two cores, all tables together: a step of BERT-Base takes 0.3 s on one core."""

PAPER = Scale(
    name="paper",
    sizes=("3/768/12", "6/768/3", "6/768/12", "12/768/12", "12/1024/16", "24/1024/16"),
    corpus_megabytes=None,
    heldout=0.01,
    vocab_size=30_000,
    cased=False,
    profile="paper",
    steps=1_000_000,
    batch_size=256,
    seq_length=128,
    long_seq_length=512,
    long_share=0.1,
    masking_rate=0.15,
    snapshots=5,
    elmo="original",
    word_vocab_size=793_471,
    targets=793_471,
    word_length=50,
    vector_size=300,
    baseline_share=1.0,
    seeds=5,
    epochs=3,
    finetuning_batch_size=32,
    learning_rates=(5e-5, 4e-5, 3e-5, 2e-5),
    mean_heads=False,
    baseline_lr=1e-3,
    baseline_epochs=20,
    limit=None,
    dev_limit=None,
    max_length=128,
    span_length=384,
)
"""The settings of the paper (sections 3.1, 4.1 and A.2)."""

SCALES: Mapping[str, Scale] = {scale.name: scale for scale in (SMOKE, TINY, PAPER)}
