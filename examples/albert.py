"""An encoder outside bertkit in one file: ALBERT (Lan et al., arXiv 1909.11942).

All layers are one block, and the table of tokens is narrower than the states. Folders are read and written as Hugging
Face's, but for the vocabulary: the published models have one of SentencePiece, which bertkit does not read.

    $ export PYTHONPATH=.            # the folder that holds examples/
    $ bertkit pretrain data --architecture examples.albert --size mini --minutes 5 -o runs/albert
    $ BERTKIT_TRUST=examples.albert bertkit finetune reviews.csv --model runs/albert -o runs/reviews

Letters: B examples, T tokens, H hidden width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from bertkit.batch import Batch, EncoderOutput
from bertkit.encoder_types.settings import MINIATURES, check_activation, check_heads, configure, read_size
from bertkit.encoder_types.spec import EncoderSpec, HuggingFaceSpec, PretrainingDefaults
from bertkit.encoder_types.transformer import (
    ACTIVATION_NAMES,
    SETTINGS,
    Transformer,
    build_post_norm_block,
    name_classes,
)
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings
from bertkit.nn.init import initialize
from bertkit.nn.linear import Linear
from bertkit.nn.pooler import Pooler
from bertkit.ranges import (
    Layers,
    Length,
    PositiveFloat,
    ShareAboveZero,
    ShareBelowOne,
    VocabularySize,
    Width,
    check_ranges,
)
from bertkit.text.loading import load_tokenizer


@dataclass(frozen=True, kw_only=True)
class AlbertConfig:
    """The hyper-parameters of ALBERT; defaults are those of its base model."""

    vocab_size: VocabularySize
    embedding_size: Width = 128
    hidden_size: Width = 768
    num_layers: Layers = 12
    num_heads: Width = 12
    intermediate_size: Width = 3072
    max_positions: Length = 512
    num_segments: Width = 2
    dropout: ShareBelowOne = 0.0
    attention_dropout: ShareBelowOne = 0.0
    activation: str = "gelu_tanh"
    layer_norm_eps: ShareAboveZero = 1e-12
    initializer_range: PositiveFloat = 0.02
    pad_id: int = 0

    def __post_init__(self) -> None:
        check_ranges(self)
        check_heads(self.hidden_size, self.num_heads, self.position_init)
        check_activation(self.activation)

    @property
    def position_init(self) -> Literal["normal"]:
        """Positions are as narrow as the tokens, so no head of the block can be pointed at neighbours."""
        return "normal"


def size(name: str, *, vocab_size: int) -> AlbertConfig:
    """The configuration for ``--size``: a published size, or any layers/width/heads such as ``"4/256/4"``."""
    shape = read_size(name, {**MINIATURES, "base": (12, 768, 12), "large": (24, 1024, 16)})
    width = shape["hidden_size"]
    fields = {"vocab_size": vocab_size, **shape, "intermediate_size": 4 * width, "embedding_size": min(128, width)}
    return configure(AlbertConfig, "ALBERT", fields)


class Albert(Transformer):
    """Narrow embeddings, a projection to the width of the block, the block applied several times, and a pooler."""

    config: AlbertConfig

    def __init__(self, config: AlbertConfig) -> None:
        narrow, wide = config.embedding_size, config.hidden_size
        embeddings = Embeddings(
            word=nn.Embedding(config.vocab_size, narrow),
            position=nn.Embedding(config.max_positions, narrow),
            segment=nn.Embedding(config.num_segments, narrow),
            norm=nn.LayerNorm(narrow, eps=config.layer_norm_eps),
            dropout=Dropout(config.dropout),
        )
        super().__init__(config, embeddings, [build_post_norm_block(config)] * config.num_layers)
        self.projection = Linear(narrow, wide)
        self.pooler = Pooler(nn.Linear(wide, wide))
        self.reset_parameters()

    def embed(self, batch: Batch) -> Float[Tensor, "B T H"]:
        """The embeddings, projected to the width of the block."""
        states: Tensor = self.projection(self.embeddings(batch.input_ids, batch.segment_ids))
        return states

    def finish(self, output: EncoderOutput, batch: Batch) -> EncoderOutput:
        """The pooler."""
        return replace(output, pooled=self.pooler(output.pooled))

    def depth(self, name: str) -> int:
        """0 for embeddings, the last layer for the block that all layers share, and one more above it."""
        depths = {"embeddings": 0, "projection": 0, "layers": self.num_layers}
        return depths.get(name.partition(".")[0], self.num_layers + 1)

    def reinitialize_top(self, layers: int) -> None:
        """Initialise the block, which is in every layer, and the pooler."""
        for part in (self.layers, self.pooler):
            initialize(part, self.config.initializer_range)


def _weight_and_bias(ours: str, *theirs: str) -> dict[str, tuple[str, ...]]:
    return {f"{ours}.{part}": tuple(f"{each}.{part}" for each in theirs) for part in ("weight", "bias")}


_BLOCK = "encoder.albert_layer_groups.0.albert_layers.0."

_NAMES: Mapping[str, tuple[str, ...]] = {
    "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
    "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
    "embeddings.segment.weight": ("embeddings.token_type_embeddings.weight",),
    **_weight_and_bias("embeddings.norm", "embeddings.LayerNorm"),
    **_weight_and_bias("projection", "encoder.embedding_hidden_mapping_in"),
    **_weight_and_bias(
        "layers.{layer}.attention.qkv", *(f"{_BLOCK}attention.{part}" for part in ("query", "key", "value"))
    ),
    **_weight_and_bias("layers.{layer}.attention.output", f"{_BLOCK}attention.dense"),
    **_weight_and_bias("layers.{layer}.attention_norm", f"{_BLOCK}attention.LayerNorm"),
    **_weight_and_bias("layers.{layer}.feed_forward.inner", f"{_BLOCK}ffn"),
    **_weight_and_bias("layers.{layer}.feed_forward.outer", f"{_BLOCK}ffn_output"),
    **_weight_and_bias("layers.{layer}.feed_forward_norm", f"{_BLOCK}full_layer_layer_norm"),
    **_weight_and_bias("pooler.dense", "pooler"),
}
"""Our name of a weight -> Hugging Face's. Theirs have no number: every layer is the same block."""

SPEC = EncoderSpec(
    title="ALBERT",
    encoder=Albert,
    config=AlbertConfig,
    load_tokenizer=load_tokenizer,
    size=size,
    model_type="albert",
    pretraining=PretrainingDefaults(objectives=("mlm",), not_fast=("token_init",)),
    huggingface=HuggingFaceSpec(
        weights=_NAMES,
        prefix="albert.",
        settings={**SETTINGS, "embedding_size": ("embedding_size",), "max_positions": ("max_position_embeddings",)},
        values={"activation": ACTIVATION_NAMES},
        fixed={"num_hidden_groups": 1, "inner_group_num": 1},
        assumed={"vocab_size": 30_000},
        architectures=name_classes("Albert"),
        heads={
            "mlm": {
                **_weight_and_bias("transform", "predictions.dense"),
                **_weight_and_bias("norm", "predictions.LayerNorm"),
                "bias": ("predictions.bias",),
            }
        },
        optional_part="pooler",
        tied={
            "mlm": {
                "predictions.decoder.weight": "embeddings.word_embeddings.weight",
                "predictions.decoder.bias": "predictions.bias",
            }
        },
    ),
)
