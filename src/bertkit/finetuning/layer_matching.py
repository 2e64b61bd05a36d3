"""Distillation of layers: texts that are alike for a layer of the teacher become alike for a layer of the student.

Letters: B texts, T tokens, L layers of the student, S its width, W the width of the teacher.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from bertkit.batch import Batch, EncoderOutput, LossTerm, LossTerms, Outputs
from bertkit.contracts import Encoder, Objective
from bertkit.finetuning.record import LEAST_COMPARED
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.predict import run_features
from bertkit.nn.pooler import mean_pool
from bertkit.task_types import TextExample, TextTask

_MEANS = "means"
_BATCH = 32


class MatchedLayers(Objective):
    """1 - CKA of the means of the states of texts, averaged over the layers (Kornblith et al., arXiv 1905.00414).

    The labels (B, L, W) are the means of the teacher's states in the layer that is as far up as that of the student.
    CKA compares how alike the texts of a batch are, so both networks may have any width and any tokenizer, and nothing
    but the encoder is trained. It is 1 if the similarities are the same up to a factor. The texts of one micro-batch
    are compared with each other; one of fewer than three, as at the end of an epoch, is not counted.
    """

    label = "teacher_layers"
    in_huggingface = False
    reads_pooled = False
    reads_layers = True

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, states: EncoderOutput, batch: Batch) -> Outputs:
        """``means`` (B, L, S)."""
        return {_MEANS: _layer_means(states, batch, range(1, len(states.layers)))}

    def loss(self, outputs: Outputs, batch: Batch) -> LossTerms:
        """The loss of the batch, times its texts."""
        ours, theirs = outputs[_MEANS].float(), batch.labels[self.label].float()
        count = self.counts(batch)[self.label]
        if not count:
            return {self.label: LossTerm(0 * ours.sum(), 0)}
        alike = torch.stack([_cka(ours[:, layer], theirs[:, layer]) for layer in range(ours.shape[1])])
        return {self.label: LossTerm((1 - alike.mean()) * count, count)}

    def counts(self, batch: Batch) -> dict[str, int]:
        """Every text has a target, if there are enough to compare."""
        count = len(batch.on_host.labels[self.label])
        return {self.label: count if count >= LEAST_COMPARED else 0}


def predict_layer_means(
    teacher: Pipeline, task: TextTask, texts: Sequence[TextExample], layers: int
) -> list[Float[NDArray[np.float16], "L W"]]:
    """The targets of a student with this number of ``layers``: the means of the teacher's states for each text.

    ``task`` reads the texts for the teacher.
    """
    features = [features[0] for _, features in task.encode_all(texts, teacher.tokenizer)]
    rows = run_features(
        _LayerMeans(teacher.fast_encoder, choose_layers(layers, teacher.fast_encoder.num_layers)),
        features,
        teacher.tokenizer.pad_id,
        _BATCH,
        teacher.runtime.autocast_precision,
    )
    return [row[_MEANS].astype(np.float16) for row in rows]


def choose_layers(layers: int, depth: int) -> list[int]:
    """The layer of a teacher of this ``depth`` for each of the ``layers`` of a student: as far up, or next above."""
    return [-(-layer * depth // layers) for layer in range(1, layers + 1)]


class _LayerMeans(nn.Module):
    """The means of the states of some layers, as an output of a head."""

    def __init__(self, encoder: Encoder, layers: Sequence[int]) -> None:
        super().__init__()
        self.encoder = encoder
        self.layers = layers

    def forward(self, batch: Batch) -> dict[str, Outputs]:
        """``means`` (B, L, W)."""
        states = self.encoder(batch, output_hidden_states=True)
        return {_MEANS: {_MEANS: _layer_means(states, batch, self.layers)}}


def _layer_means(states: EncoderOutput, batch: Batch, layers: Sequence[int]) -> Float[Tensor, "B L S"]:
    return torch.stack([mean_pool(states.layers[layer], batch.attention_mask) for layer in layers], dim=1)


def _cka(ours: Float[Tensor, "B S"], theirs: Float[Tensor, "B W"]) -> Float[Tensor, ""]:
    """Linear centred kernel alignment, from 0 to 1; of two texts it is 1, whatever the states are."""
    with torch.autocast(ours.device.type, enabled=False):  # in bfloat16 the loss of two good layers is below 0
        return F.cosine_similarity(_similarities(ours).flatten(), _similarities(theirs).flatten(), dim=0)


def _similarities(states: Float[Tensor, "B S"]) -> Float[Tensor, "B B"]:
    centred = states - states.mean(dim=0)
    return centred @ centred.T
