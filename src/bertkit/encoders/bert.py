"""BERT (Devlin et al., arXiv 1810.04805): configuration, network, and its names in Hugging Face's files.

Letters: B examples, T tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from jaxtyping import Bool
from torch import Tensor, nn

from bertkit.contracts import Batch, Encoder, EncoderOutput
from bertkit.encoders import Foreign
from bertkit.encoders._settings import check_activation, check_counts, check_transformer, configure, read_size
from bertkit.errors import usage_error
from bertkit.nn.activation import ACTIVATIONS
from bertkit.nn.attention import SelfAttention
from bertkit.nn.block import PostNormBlock, ResidualNorm
from bertkit.nn.dropout import Dropout
from bertkit.nn.embeddings import Embeddings
from bertkit.nn.feed_forward import FeedForward
from bertkit.nn.init import fill_sinusoids, initialize
from bertkit.nn.pooler import FirstTokenPooler
from bertkit.nn.stack import BlockStack
from bertkit.text.wordpiece import WordPiece

SIZES: Mapping[str, tuple[int, int, int]] = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}
"""Layers, hidden width and heads of the published models (google-research/bert README)."""


@dataclass(frozen=True, kw_only=True)
class BertConfig:
    """Everything the network's shape and behaviour depend on. The defaults are the paper's.

    ``dropout`` acts on the embeddings and on every sub-layer's output, ``attention_dropout`` on the
    attention probabilities. ``layer_norm_eps`` and ``initializer_range`` are google-research/bert's.
    ``first_positions`` are what the learned positions start from; sinusoids are learned from sooner.
    """

    vocab_size: int
    hidden_size: int = 768
    num_layers: int = 12
    num_heads: int = 12
    intermediate_size: int = 3072
    max_positions: int = 512
    num_segments: int = 2
    dropout: float = 0.1
    attention_dropout: float = 0.1
    activation: str = "gelu"
    layer_norm_eps: float = 1e-12
    initializer_range: float = 0.02
    first_positions: Literal["drawn", "sinusoids"] = "drawn"
    pad_id: int = 0

    def __post_init__(self) -> None:
        check_counts(self, "vocab_size", "hidden_size", "num_layers", "num_heads")
        check_counts(self, "intermediate_size", "max_positions", "num_segments")
        check_transformer(self)
        check_activation(self.activation)
        if not 0 <= self.pad_id < self.vocab_size:
            raise usage_error(f"pad_id is {self.pad_id}; the vocabulary has the ids 0 to {self.vocab_size - 1}.")


def size(name: str, *, vocab_size: int, **changes: Any) -> BertConfig:
    """The configuration of a published size, or of any layers/width/heads such as ``"4/256/4"``.

    The intermediate width is four times the hidden width unless ``changes``, fields of BertConfig, say
    otherwise.
    """
    shape = read_size(name, SIZES)
    fields = {"vocab_size": vocab_size, **shape, "intermediate_size": 4 * shape["hidden_size"], **changes}
    return configure(BertConfig, "BERT", fields)


class Bert(Encoder):
    """Embeddings, a stack of post-norm blocks, and the [CLS] pooler."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.hidden_size = config.hidden_size
        self.num_layers = config.num_layers
        self.embeddings = Embeddings(
            word=nn.Embedding(config.vocab_size, config.hidden_size),
            position=nn.Embedding(config.max_positions, config.hidden_size),
            segment=nn.Embedding(config.num_segments, config.hidden_size),
            norm=nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps),
            dropout=Dropout(config.dropout),
        )
        self.layers = BlockStack(_build_block(config) for _ in range(config.num_layers))
        self.pooler = FirstTokenPooler(nn.Linear(config.hidden_size, config.hidden_size))
        initialize(self, config.initializer_range)
        if config.first_positions == "sinusoids":
            fill_sinusoids(self.embeddings.position.weight, config.initializer_range)

    def depth(self, name: str) -> int:
        """The layer that a parameter belongs to: embeddings 0, blocks from 1, and the pooler above the last block."""
        part, number, *_ = name.split(".")
        if part == "layers":
            return 1 + int(number)
        return 0 if part == "embeddings" else self.num_layers + 1

    def redraw(self, blocks: int) -> None:
        """Draw the last ``blocks`` blocks and the pooler anew."""
        for part in (*self.layers[self.num_layers - blocks :], self.pooler):
            initialize(part, self.config.initializer_range)

    def forward(self, batch: Batch, wanted: Bool[Tensor, "B T"] | None = None) -> EncoderOutput:
        """States of the ``wanted`` tokens and of [CLS], which the pooler reads; raises a usage error where a row is too
        long.
        """
        if wanted is not None:
            wanted = wanted.clone()
            wanted[:, 0] = True
        hidden, layers = self.layers(
            self.embeddings(batch.input_ids, batch.segment_ids),
            batch.on_host.attention_mask,
            wanted,
            keep=self.keep_layers,
            recompute=self.gradient_checkpointing,
        )
        return EncoderOutput(hidden_states=hidden, pooled=self.pooler(hidden), layers=layers)


def _build_block(config: BertConfig) -> PostNormBlock:
    hidden = config.hidden_size
    return PostNormBlock(
        attention=SelfAttention(
            qkv=nn.Linear(hidden, 3 * hidden),
            output=nn.Linear(hidden, hidden),
            num_heads=config.num_heads,
            dropout=config.attention_dropout,
        ),
        attention_norm=ResidualNorm(hidden, eps=config.layer_norm_eps, dropout=Dropout(config.dropout)),
        feed_forward=FeedForward(
            inner=nn.Linear(hidden, config.intermediate_size),
            activation=ACTIVATIONS[config.activation](),
            outer=nn.Linear(config.intermediate_size, hidden),
        ),
        feed_forward_norm=ResidualNorm(hidden, eps=config.layer_norm_eps, dropout=Dropout(config.dropout)),
    )


FOREIGN_PREFIX = "bert."

_LAYER = "encoder.layer.{layer}."

FOREIGN_NAMES: Mapping[str, tuple[str, ...]] = {
    "embeddings.word.weight": ("embeddings.word_embeddings.weight",),
    "embeddings.position.weight": ("embeddings.position_embeddings.weight",),
    "embeddings.segment.weight": ("embeddings.token_type_embeddings.weight",),
    "embeddings.norm.weight": ("embeddings.LayerNorm.weight",),
    "embeddings.norm.bias": ("embeddings.LayerNorm.bias",),
    "layers.{layer}.attention.qkv.weight": tuple(
        f"{_LAYER}attention.self.{part}.weight" for part in ("query", "key", "value")
    ),
    "layers.{layer}.attention.qkv.bias": tuple(
        f"{_LAYER}attention.self.{part}.bias" for part in ("query", "key", "value")
    ),
    "layers.{layer}.attention.output.weight": (f"{_LAYER}attention.output.dense.weight",),
    "layers.{layer}.attention.output.bias": (f"{_LAYER}attention.output.dense.bias",),
    "layers.{layer}.attention_norm.weight": (f"{_LAYER}attention.output.LayerNorm.weight",),
    "layers.{layer}.attention_norm.bias": (f"{_LAYER}attention.output.LayerNorm.bias",),
    "layers.{layer}.feed_forward.inner.weight": (f"{_LAYER}intermediate.dense.weight",),
    "layers.{layer}.feed_forward.inner.bias": (f"{_LAYER}intermediate.dense.bias",),
    "layers.{layer}.feed_forward.outer.weight": (f"{_LAYER}output.dense.weight",),
    "layers.{layer}.feed_forward.outer.bias": (f"{_LAYER}output.dense.bias",),
    "layers.{layer}.feed_forward_norm.weight": (f"{_LAYER}output.LayerNorm.weight",),
    "layers.{layer}.feed_forward_norm.bias": (f"{_LAYER}output.LayerNorm.bias",),
    "pooler.dense.weight": ("pooler.dense.weight",),
    "pooler.dense.bias": ("pooler.dense.bias",),
}
"""Our name -> Hugging Face's; see ``Foreign``."""

_PREDICTIONS = "cls.predictions."

FOREIGN = Foreign(
    model_type="bert",
    encoder=Bert,
    config=BertConfig,
    load_tokenizer=WordPiece.load,
    weights=FOREIGN_NAMES,
    prefix=FOREIGN_PREFIX,
    settings={
        "vocab_size": ("vocab_size",),
        "hidden_size": ("hidden_size",),
        "num_layers": ("num_hidden_layers",),
        "num_heads": ("num_attention_heads",),
        "intermediate_size": ("intermediate_size",),
        "max_positions": ("max_position_embeddings",),
        "num_segments": ("type_vocab_size",),
        "dropout": ("hidden_dropout_prob",),
        "attention_dropout": ("attention_probs_dropout_prob",),
        "layer_norm_eps": ("layer_norm_eps",),
        "initializer_range": ("initializer_range",),
        "first_positions": ("first_positions",),
        "pad_id": ("pad_token_id",),
        "activation": ("hidden_act",),
    },
    values={
        "activation": {
            "gelu": "gelu",
            "gelu_python": "gelu",
            "gelu_new": "gelu_tanh",
            "gelu_pytorch_tanh": "gelu_tanh",
            "relu": "relu",
        }
    },
    fixed={"position_embedding_type": "absolute", "is_decoder": False},
    assumed={"vocab_size": 30522},
    architectures={
        frozenset(): "BertModel",
        frozenset({"mlm", "nsp"}): "BertForPreTraining",
        frozenset({"mlm"}): "BertForMaskedLM",
        frozenset({"nsp"}): "BertForNextSentencePrediction",
        frozenset({"class"}): "BertForSequenceClassification",
        frozenset({"labels"}): "BertForSequenceClassification",
        frozenset({"number"}): "BertForSequenceClassification",
        frozenset({"tags"}): "BertForTokenClassification",
        frozenset({"span"}): "BertForQuestionAnswering",
        frozenset({"choice"}): "BertForMultipleChoice",
    },
    fresh="pooler",
    buffers=("embeddings.position_ids", "embeddings.token_type_ids"),
    tied={
        "mlm": {
            f"{_PREDICTIONS}decoder.weight": "embeddings.word_embeddings.weight",
            f"{_PREDICTIONS}decoder.bias": f"{_PREDICTIONS}bias",
        }
    },
)


def specimen() -> Bert:
    """A small network of odd sizes: what the shelf's tests run on."""
    return Bert(size("3/12/2", vocab_size=99, intermediate_size=37, max_positions=41, num_segments=3))
