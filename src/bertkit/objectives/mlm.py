"""The masked language model (paper, section 3.1, task 1): mask some tokens and predict them.

Letters: B examples, T tokens, H hidden width, V vocabulary, M masked positions of the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertkit.batch import IGNORE, Batch, EncoderOutput, Outputs, id_of
from bertkit.contracts import Context, Encoder, SubwordTokenizer, has_prediction_head
from bertkit.errors import usage_error
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.init import BERT_SIGMA, initialize
from bertkit.nn.linear import Linear, linear
from bertkit.objective_settings import Masking, ObjectiveSettings
from bertkit.objectives._vocabulary_head import VocabularyHead, find_token_embedding
from bertkit.rng import CounterRng

_NEVER = 2.0
"""Sorts after every random number, which are below 1."""


def mask_tokens(
    batch: Batch,
    rng: CounterRng,
    masking: Masking,
    *,
    vocab_size: int,
    mask_id: int,
    special_ids: Sequence[int],
    continues_word: NDArray[np.bool_] | None = None,
) -> Batch:
    """Mask tokens of every row; ``labels["mlm"]`` (B, T) has the original tokens, IGNORE elsewhere.

    Of a row of n tokens, special ones included, ``min(max_predictions, max(1, round(rate * n)))`` are selected, never
    one of ``special_ids`` ([CLS] and [SEP]; google-research/bert ``create_pretraining_data.py``,
    ``create_masked_lm_predictions``). ``continues_word`` (V,) is True for subwords that continue a word, and is needed
    for whole-word masking. A row depends on its own random numbers alone, not on other rows or on padding.
    """
    ids: NDArray[np.int64] = batch.input_ids.numpy()
    real: NDArray[np.bool_] = batch.attention_mask.numpy()
    candidates = real.copy()
    for special in special_ids:
        candidates &= ids != special
    budget = _count_masked(real.sum(axis=1), masking)
    if masking.whole_word:
        assert continues_word is not None, "whole-word masking needs continues_word"
        chosen = _choose_words(_number_words(candidates, continues_word[ids]), candidates, budget, rng)
    else:
        chosen = _choose_subwords(candidates, budget, rng)
    width = ids.shape[1]
    # The names of the streams are part of the random numbers: other names would mask other tokens.
    action = rng.uniform("mlm.fate", width)
    masked_ids = np.where(action < masking.mask, mask_id, ids)
    becomes_random = (action >= masking.mask) & (action < masking.mask + masking.random)
    masked_ids = np.where(becomes_random, rng.below("mlm.piece", vocab_size, width), masked_ids)
    masked = replace(batch, input_ids=torch.from_numpy(np.where(chosen, masked_ids, ids)))
    return masked.with_labels(mlm=torch.from_numpy(np.where(chosen, ids, IGNORE)))


def _count_masked(lengths: NDArray[np.int64], masking: Masking) -> NDArray[np.int64]:
    """(B,) the number of tokens to select in each row. Halves are rounded to even, as by Python's ``round``."""
    counts = np.maximum(1, np.rint(masking.rate * lengths).astype(np.int64))
    limit = np.iinfo(np.int64).max if masking.max_predictions is None else masking.max_predictions
    limited: NDArray[np.int64] = np.minimum(counts, limit)
    return limited


def _choose_subwords(candidates: NDArray[np.bool_], budget: NDArray[np.int64], rng: CounterRng) -> NDArray[np.bool_]:
    """The candidates with the ``budget`` smallest random numbers of their row."""
    keys = np.where(candidates, rng.uniform("mlm.choose", candidates.shape[1]), _NEVER)
    last = np.minimum(budget, candidates.shape[1]) - 1
    threshold = np.take_along_axis(np.sort(keys, axis=1), last[:, None], axis=1)
    chosen: NDArray[np.bool_] = candidates & (keys <= threshold)
    return chosen


def _number_words(candidates: NDArray[np.bool_], continues: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(B, T) the word of each token, counted from 0 in its row.

    A continuation right after a special token, which truncation can leave, begins a word.
    """
    after_candidate = np.zeros_like(candidates)
    after_candidate[:, 1:] = candidates[:, :-1]
    starts = candidates & ~(continues & after_candidate)
    words: NDArray[np.int64] = np.maximum(np.cumsum(starts, axis=1) - 1, 0)
    return words


def _choose_words(
    words: NDArray[np.int64], candidates: NDArray[np.bool_], budget: NDArray[np.int64], rng: CounterRng
) -> NDArray[np.bool_]:
    """All subwords of words taken in random order; a word that would exceed the budget is left out.

    A row may have fewer than its budget, as in the paper's code. Each iteration decides on one word of every row.
    """
    rows, width = words.shape
    row_numbers = np.arange(rows)
    lengths = np.bincount((words + row_numbers[:, None] * width)[candidates], minlength=rows * width)
    lengths = lengths.reshape(rows, width)
    order = np.argsort(np.where(lengths > 0, rng.uniform("mlm.choose", width), _NEVER), axis=1)
    taken = np.zeros((rows, width), dtype=bool)
    left = budget.copy()
    for word in order[:, : lengths.astype(bool).sum(axis=1).max()].T:
        fits = lengths[row_numbers, word] <= left
        taken[row_numbers, word] = fits
        left -= np.where(fits, lengths[row_numbers, word], 0)
        if not left.any():
            break
    chosen: NDArray[np.bool_] = candidates & np.take_along_axis(taken, words, axis=1)
    return chosen


class MaskedLanguageModel(VocabularyHead):
    """Transform, LayerNorm, and the token embeddings as the output layer, with a bias of its own.

    The transform is from ``hidden_size`` to the width of the embeddings; None means that they are equal.

    Only the labelled positions are transformed and projected, so the logits are (M, V) and 85 % of the vocabulary
    projection is saved.

    An encoder with a prediction head of its own (``PredictionLayer``) transforms the states itself; then
    ``transform`` is False.
    """

    label = "mlm"
    context: ClassVar[Context] = "bidirectional"
    reads_masking: ClassVar[bool] = True
    pipeline_tag: ClassVar[str] = "fill-mask"
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "transform.weight": ("cls.predictions.transform.dense.weight",),
        "transform.bias": ("cls.predictions.transform.dense.bias",),
        "norm.weight": ("cls.predictions.transform.LayerNorm.weight",),
        "norm.bias": ("cls.predictions.transform.LayerNorm.bias",),
        "bias": ("cls.predictions.bias",),
    }

    def __init__(
        self,
        embedding: nn.Embedding,
        *,
        activation: str = "gelu",
        layer_norm_eps: float = 1e-12,
        initializer_range: float = BERT_SIGMA,
        transform: bool = True,
        hidden_size: int | None = None,
    ) -> None:
        super().__init__(embedding)
        vocab_size, width = embedding.weight.shape
        self.transform = Linear(hidden_size or width, width) if transform else None
        self.activation = ACTIVATIONS[activation]()
        self.norm = nn.LayerNorm(width, eps=layer_norm_eps) if transform else None
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        initialize(self, initializer_range)

    @classmethod
    def build(cls, encoder: Encoder, settings: ObjectiveSettings) -> Self:
        """A head with the activation, epsilon and initializer range of the encoder."""
        names = ("activation", "layer_norm_eps", "initializer_range")
        shared = {name: getattr(encoder.config, name) for name in names if hasattr(encoder.config, name)}
        transform = not has_prediction_head(encoder)
        embedding = find_token_embedding(encoder, "mlm", any_width=transform)
        return cls(embedding, transform=transform, hidden_size=encoder.hidden_size, **shared)

    @classmethod
    def add_labels(
        cls, batch: Batch, rng: CounterRng, tokenizer: SubwordTokenizer, settings: ObjectiveSettings
    ) -> Batch:
        """Mask tokens of every row; see ``mask_tokens``."""
        if tokenizer.mask_id == tokenizer.unk_id:
            raise usage_error("task.objectives has mlm, but this tokenizer has no mask token. Use one that has.")
        return mask_tokens(
            batch,
            rng,
            settings.masking,
            vocab_size=tokenizer.vocab_size,
            mask_id=tokenizer.mask_id,
            special_ids=[id_of(tokenizer.cls_id), id_of(tokenizer.sep_id)],
            continues_word=tokenizer.continues_word,
        )

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (M, V) of the labelled positions, of every position without labels; see ``pick_rows``."""
        rows = states.apply_head(self.pick_rows(states, batch))
        if self.transform is not None and self.norm is not None:
            rows = self.norm(self.activation(self.transform(rows)))
        return {"logits": linear(rows, self.output_weight, self.bias)}

    def count_macs(self, batch: Batch) -> int:
        """The multiply-accumulates at the labelled positions: the transform, here or in the encoder, and the
        vocabulary projection."""
        vocab_size, width = self.output_weight.shape
        read = width if self.transform is None else self.transform.in_features
        return self.counts(batch)[self.label] * width * (read + vocab_size)


def tiny(hidden_size: int, batch: Batch) -> tuple[MaskedLanguageModel, Batch]:
    """A small instance and ``batch`` with labels for it, for tests."""
    embedding = nn.Embedding(99, hidden_size)
    labels = torch.where(torch.arange(batch.input_ids.numel()) % 3 == 1, batch.input_ids.flatten(), IGNORE)
    labels = labels.view_as(batch.input_ids).masked_fill(~batch.attention_mask, IGNORE)
    return MaskedLanguageModel(embedding), batch.with_labels(mlm=labels)
