"""RoBERTa (Liu et al., arXiv 1907.11692): BERT's network with other position numbers, and its names at Hugging Face.

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.batch import Batch
from bertkit.encoder_types.settings import (
    MINIATURES,
    PositionInit,
    check_activation,
    check_heads,
    check_pad,
    configure,
    read_size,
)
from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoder_types.transformer import ACTIVATION_NAMES, NAMES, SETTINGS, PooledTransformer, name_classes
from bertkit.errors import usage_error
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings
from bertkit.ranges import (
    Layers,
    Length,
    NonNegativeInt,
    PositiveFloat,
    ShareAboveZero,
    ShareBelowOne,
    VocabularySize,
    Width,
    check_ranges,
)
from bertkit.text.byte_bpe import ByteLevelBPE

SIZES: Mapping[str, tuple[int, int, int]] = {**MINIATURES, "base": (12, 768, 12), "large": (24, 1024, 16)}
"""Layers, hidden width and heads; base and large are the published models (fairseq ``examples/roberta``)."""


@dataclass(frozen=True, kw_only=True)
class RobertaConfig:
    """The hyper-parameters of RoBERTa; defaults are those of the published models.

    ``num_positions`` is the size of the table of positions, whose first ``pad_id + 1`` rows are never used.
    ``num_segments`` is the size of the table of segments; all tokens have the first. ``position_init`` is as in BERT.
    """

    vocab_size: VocabularySize
    hidden_size: Width = 768
    num_layers: Layers = 12
    num_heads: Width = 12
    intermediate_size: Width = 3072
    num_positions: Length = 514
    num_segments: Width = 1
    dropout: ShareBelowOne = 0.1
    attention_dropout: ShareBelowOne = 0.1
    activation: str = "gelu"
    layer_norm_eps: ShareAboveZero = 1e-5
    initializer_range: PositiveFloat = 0.02
    position_init: PositionInit = "normal"
    pad_id: NonNegativeInt = 1

    def __post_init__(self) -> None:
        check_ranges(self)
        check_heads(self.hidden_size, self.num_heads, self.position_init)
        check_activation(self.activation)
        check_pad(self.pad_id, self.vocab_size)
        if self.max_positions < 1:
            raise usage_error(
                f"num_positions is {self.num_positions}; it must be {self.pad_id + 2} or more: "
                f"positions begin at pad_id + 1."
            )

    @property
    def max_positions(self) -> int:
        """The longest row, in tokens."""
        return self.num_positions - self.pad_id - 1


def size(name: str, *, vocab_size: int, **changes: object) -> RobertaConfig:
    """The configuration of a published size, or of any layers/width/heads such as ``"4/256/4"``.

    The intermediate width is four times the hidden width unless ``changes``, fields of RobertaConfig, set it.
    """
    shape = read_size(name, SIZES)
    fields = {"vocab_size": vocab_size, **shape, "intermediate_size": 4 * shape["hidden_size"], **changes}
    return configure(RobertaConfig, "RoBERTa", fields)


class Roberta(PooledTransformer):
    """Embeddings, post-norm blocks, and a pooler on ``<s>``, which was never pre-trained.

    Positions begin at ``pad_id + 1``; those of padding are ignored, and so are segments.
    """

    config: RobertaConfig

    def __init__(self, config: RobertaConfig) -> None:
        embeddings = Embeddings(
            word=nn.Embedding(config.vocab_size, config.hidden_size),
            position=nn.Embedding(config.num_positions, config.hidden_size),
            segment=nn.Embedding(config.num_segments, config.hidden_size),
            norm=nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps),
            dropout=Dropout(config.dropout),
            first_position=config.pad_id + 1,
        )
        super().__init__(config, embeddings)

    def embed(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """The sum of the embeddings of tokens, positions and the one segment, after LayerNorm and dropout."""
        states: Tensor = self.embeddings(batch.input_ids, torch.zeros_like(batch.segment_ids))
        return states


HF_NAMES = NAMES

_POOLER_IN_CLASSIFIER = {f"pooler.dense.{part}": f"classifier.dense.{part}" for part in ("weight", "bias")}
"""Their classifier has a hidden layer of its own in place of the pooler; it computes the same."""

_CLASSIFIER = {f"classifier.{part}": (f"classifier.out_proj.{part}",) for part in ("weight", "bias")}

SPEC = EncoderSpec(
    title="RoBERTa",
    encoder=Roberta,
    config=RobertaConfig,
    load_tokenizer=ByteLevelBPE.load,
    size=size,
    pretraining=PretrainingDefaults(
        objectives=("mlm",),
        settings={"task.sampling.full_sentences": True},
        # fairseq examples/roberta/config/pretraining/base.yaml; its 125,000 steps are for its own corpus.
        paper={
            "seq_length": 512,
            "batch_size": 2048,
            "optimizer.lr": 5e-4,
            "optimizer.beta2": 0.98,
            "optimizer.bias_correction": True,
            "optimizer.clip_norm": 0.0,
            "schedule.warmup": 0.08,  # 10,000 of 125,000 steps
            "schedule.decay": "linear",
        },
    ),
    huggingface=HuggingFaceSpec(
        weights=HF_NAMES,
        prefix="roberta.",
        settings={**SETTINGS, "num_positions": ("max_position_embeddings",), "position_init": ("position_init",)},
        values={"activation": ACTIVATION_NAMES},
        fixed={"position_embedding_type": "absolute", "pruned_heads": {}, "is_decoder": False},
        assumed={"vocab_size": 50265, "num_positions": 512, "num_segments": 2, "layer_norm_eps": 1e-12},
        architectures=name_classes("Roberta"),
        heads={
            "mlm": {
                "transform.weight": ("lm_head.dense.weight",),
                "transform.bias": ("lm_head.dense.bias",),
                "norm.weight": ("lm_head.layer_norm.weight",),
                "norm.bias": ("lm_head.layer_norm.bias",),
                "bias": ("lm_head.bias",),
            },
            "class": _CLASSIFIER,
            "labels": _CLASSIFIER,
            "number": {f"regressor.{part}": (f"classifier.out_proj.{part}",) for part in ("weight", "bias")},
        },
        moved=dict.fromkeys(("class", "labels", "number"), _POOLER_IN_CLASSIFIER),
        optional_part="pooler",
        positions_from_pad=True,
        buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
        tied={
            "mlm": {
                "lm_head.decoder.weight": "embeddings.word_embeddings.weight",
                "lm_head.decoder.bias": "lm_head.bias",
            }
        },
    ),
)


def tiny() -> Roberta:
    """A small network with sizes that differ from one another, for tests."""
    return Roberta(size("3/12/2", vocab_size=99, intermediate_size=37, num_positions=41, pad_id=3))
