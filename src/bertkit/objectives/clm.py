"""The causal language model of GPT (Radford et al. 2018, section 3.1): predict the next token.

Letters: B examples, T tokens, V vocabulary, M labelled positions of the whole batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import torch
from torch import nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput, Outputs
from bertkit.contracts import Context, Encoder, SubwordTokenizer
from bertkit.nn.linear import linear
from bertkit.objective_settings import ObjectiveSettings
from bertkit.objectives._vocabulary_head import VocabularyHead, find_token_embedding
from bertkit.rng import CounterRng


def label_next(batch: Batch) -> Batch:
    """``labels["clm"]`` (B, T) is the token after each token, IGNORE at the last one of a row and on padding."""
    following = torch.where(batch.attention_mask, batch.input_ids, IGNORE)[:, 1:]
    return batch.with_labels(clm=F.pad(following, (0, 1), value=IGNORE))


class CausalLanguageModel(VocabularyHead):
    """The token embeddings as the output layer, and nothing else.

    Every token of a step has the same weight; openai/finetune-transformer-lm, where this is an auxiliary loss, takes
    the mean of each row first, and its softmax includes the position embeddings, which are in the same table. The
    encoder must be causal.
    """

    label = "clm"
    context: ClassVar[Context] = "causal"
    pipeline_tag: ClassVar[str] = "text-generation"
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @classmethod
    def build(cls, encoder: Encoder, settings: ObjectiveSettings) -> Self:
        """A head on the token embeddings of ``encoder``."""
        return cls(find_token_embedding(encoder, "clm"))

    @classmethod
    def add_labels(
        cls, batch: Batch, rng: CounterRng, tokenizer: SubwordTokenizer, settings: ObjectiveSettings
    ) -> Batch:
        """The label of every token is the token after it."""
        return label_next(batch)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``logits`` (M, V) of the labelled positions, of every position without labels; see ``pick_rows``."""
        return {"logits": linear(states.apply_head(self.pick_rows(states, batch)), self.output_weight)}

    def count_macs(self, batch: Batch) -> int:
        """The multiply-accumulates of the vocabulary projection, at the labelled positions."""
        return self.counts(batch)[self.label] * self.output_weight.numel()


def tiny(hidden_size: int, batch: Batch) -> tuple[CausalLanguageModel, Batch]:
    """A small instance and ``batch`` with labels for it, for tests."""
    return CausalLanguageModel(nn.Embedding(99, hidden_size)), label_next(batch)
