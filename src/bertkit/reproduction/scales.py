"""The sizes of a reproduction: the paper's own, or those that a small machine can train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bertkit.errors import usage_error

LONGEST = 512
"""Positions of every network, in tokens."""

_SHORTEST = 8
"""Tokens in which a pair of texts fits between the special tokens."""

_LEAST: Mapping[str, int] = {
    **dict.fromkeys(("steps", "batch_size", "snapshots", "targets", "vector_size"), 1),
    **dict.fromkeys(("seeds", "epochs", "batch", "baseline_epochs", "limit", "dev_limit"), 1),
    "vocab_size": 261,  # every byte and RoBERTa's five special tokens
    "words": 5,
    "word_length": 3,
}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """The sizes and settings that all systems of a reproduction share. ``--set`` changes single fields.

    ``sizes`` (layers/width/heads) are the six of Table 6 in ascending order; the fourth is BERT-Base, the last
    BERT-Large. ``corpus_megabytes`` of text are read, or all of it with None; the share ``heldout`` is for evaluation.
    ``profile`` names settings of pre-training (``pretraining/defaults.py``) that no field has. With ``cased`` one
    vocabulary serves all tasks; without it, as in the paper, named entities have their own cased models. ``masked`` is
    the share of tokens that are selected for prediction. ``snapshots`` models are saved during pre-training, for
    Figure 5. ``elmo`` is a size of ELMo, ``words`` its vocabulary, of which the ``targets`` most frequent words are
    predicted. Word models (``baseline_...``) have LSTMs of the published width times
    ``baseline_share``, and learning rate and epochs of their own, as only their inputs are pre-trained. ``batch``,
    ``epochs`` and ``learning_rates`` are those of fine-tuning; the learning rate that is best on dev counts, as in the
    paper. ``limit`` and ``dev_limit`` are the largest numbers of training and dev examples; ``max_length`` and
    ``span_length``, for SQuAD, are tokens.
    """

    name: str
    sizes: tuple[str, str, str, str, str, str]
    corpus_megabytes: float | None
    heldout: float
    vocab_size: int
    cased: bool
    profile: Literal["paper", "fast"]
    steps: int
    batch_size: int
    seq_length: int
    long_seq_length: int | None
    long_share: float
    masked: float
    snapshots: int
    elmo: str
    words: int
    targets: int
    word_length: int
    vector_size: int
    baseline_share: float
    seeds: int
    epochs: int
    batch: int
    learning_rates: tuple[float, ...]
    baseline_lr: float
    baseline_epochs: int
    limit: int | None
    dev_limit: int | None
    max_length: int
    span_length: int

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise usage_error(f"{name} is {value}; it must be {least} or more.")
        for name in ("seq_length", "long_seq_length", "max_length", "span_length"):
            value = getattr(self, name)
            if value is not None and not _SHORTEST <= value <= LONGEST:
                raise usage_error(f"{name} is {value}; it must be from {_SHORTEST} to {LONGEST}.")
        for name in ("heldout", "masked"):
            if not 0 < getattr(self, name) < 1:
                raise usage_error(f"{name} is {getattr(self, name)}; it must be above 0 and below 1.")
        if not 0 <= self.long_share < 1:
            raise usage_error(f"long_share is {self.long_share}; it must be from 0 to below 1.")
        for name in ("corpus_megabytes", "baseline_share"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise usage_error(f"{name} is {value}; it must be above 0.")
        if self.snapshots > self.steps:
            raise usage_error(f"snapshots is {self.snapshots}; it must be at most steps, which is {self.steps}.")
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
    masked=0.15,
    snapshots=2,
    elmo="2/16/32",
    words=3000,
    targets=1000,
    word_length=16,
    vector_size=16,
    baseline_share=0.05,
    seeds=1,
    epochs=1,
    batch=16,
    learning_rates=(1e-3,),
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
    masked=0.3,
    snapshots=5,
    elmo="2/128/512",
    words=50_000,
    targets=8000,
    word_length=20,
    vector_size=100,
    baseline_share=0.25,
    seeds=3,
    epochs=3,
    batch=32,
    learning_rates=(3e-4,),
    baseline_lr=1e-3,
    baseline_epochs=8,
    limit=3000,
    dev_limit=1000,
    max_length=128,
    span_length=256,
)
"""For a day on two cores: a step of BERT-Base takes 0.3 s on one core."""

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
    masked=0.15,
    snapshots=5,
    elmo="original",
    words=793_471,
    targets=793_471,
    word_length=50,
    vector_size=300,
    baseline_share=1.0,
    seeds=5,
    epochs=3,
    batch=32,
    learning_rates=(5e-5, 4e-5, 3e-5, 2e-5),
    baseline_lr=1e-3,
    baseline_epochs=20,
    limit=None,
    dev_limit=None,
    max_length=128,
    span_length=384,
)
"""The settings of the paper (sections 3.1, 4.1 and A.2)."""

SCALES: Mapping[str, Scale] = {scale.name: scale for scale in (SMOKE, TINY, PAPER)}
