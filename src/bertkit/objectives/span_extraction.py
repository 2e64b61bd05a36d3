"""The first and last token of an answer: two scores for every token (paper, section 4.2).

Letters: B examples, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import IGNORE, Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Objective
from bertkit.nn.init import initialize
from bertkit.nn.question_matching import QuestionMatching

_IMPOSSIBLE = -1e4
"""The score of a token that no answer can have; the sum of two is a number in every format."""


class SpanExtraction(Objective):
    """One linear layer on every token, without dropout (google-research/bert ``run_squad.py``).

    With ``question_head`` the layer reads ``QuestionMatching``, which shows where the words of the question occur, and
    tokens of the question have no score.

    ``forward`` returns ``start`` and ``end`` (B, T). The labels of a row are the positions of the first and the last
    token; both are 0, the position of [CLS], if the window has no answer. The loss is the mean of both
    cross-entropies over the real tokens. In the original the softmax includes padding, so the model has to learn to
    avoid it.
    """

    label = "span"
    reads_pooled = False
    HF_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "ends.weight": ("qa_outputs.weight",),
        "ends.bias": ("qa_outputs.bias",),
    }

    def __init__(self, hidden_size: int, *, question_head: bool = False) -> None:
        super().__init__()
        self.matching = QuestionMatching(hidden_size) if question_head else None
        self.in_huggingface = self.matching is None
        self.ends = nn.Linear(hidden_size, 2)
        initialize(self)

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``start`` and ``end`` (B, T); values at padding are undefined."""
        hidden, near = states.hidden_states, None
        if self.matching is not None:
            embeddings = hidden if states.embeddings is None else states.embeddings
            hidden, near = self.matching(
                hidden, embeddings, batch.attention_mask, batch.segment_ids, _longest_question(batch)
            )
        # Answers are ranked by the sum of two scores; in bfloat16 too many sums would be equal.
        with torch.autocast(hidden.device.type, enabled=False):
            if near is None:
                scores = self.ends(states.apply_head(hidden.float()))
            else:
                possible = batch.segment_ids == 1
                possible[:, 0] = True  # no answer
                scores = (self.ends(hidden.float()) + near).masked_fill(~possible.unsqueeze(2), _IMPOSSIBLE)
        start, end = scores.unbind(dim=-1)
        return {"start": start, "end": end}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """Cross-entropy, summed over starts and ends; each counts as one label."""
        labels = batch.labels[self.label]
        total = sum(
            F.cross_entropy(_mask_padding(outputs[name], batch), labels[:, place], ignore_index=IGNORE, reduction="sum")
            for place, name in enumerate(("start", "end"))
        )
        return {self.label: LossTerm(torch.as_tensor(total), self.counts(batch)[self.label])}


def _longest_question(batch: Batch) -> int:
    """The tokens of the longest first segment, counted on the host. An exported graph has no length that depends on the
    tokens: that of a row makes a training step a tenth slower."""
    if torch.compiler.is_exporting():
        return batch.segment_ids.shape[1]
    host = batch.on_host
    return int((host.attention_mask & (host.segment_ids == 0)).sum(dim=1).max())


def _mask_padding(scores: Tensor, batch: Batch) -> Float[Tensor, "B T"]:
    """Scores in float32, minus infinity at padding."""
    return scores.float().masked_fill(~batch.attention_mask, -torch.inf)


def tiny(hidden_size: int, batch: Batch) -> tuple[SpanExtraction, Batch]:
    """A small instance and ``batch`` with labels for it, one missing, for tests."""
    lengths = batch.attention_mask.sum(dim=1)
    labels = torch.stack([lengths // 2, lengths - 1], dim=1)
    labels[1] = IGNORE
    return SpanExtraction(hidden_size), batch.with_labels(**{SpanExtraction.label: labels})
